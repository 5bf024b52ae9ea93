"""EXPLAIN says of the running plan what is true of it, twice: as text and as JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dovetail.core.errors import SessionError
from dovetail.engine.explain.describe.look import Look
from dovetail.engine.explain.explain import explain_plan, explain_query
from dovetail.engine.explain.records import costs, partitions, plan, steps, stores
from dovetail.engine.planning.fill_intermediates import FillPolicy
from dovetail.optimizer.intermediates.kept import maintained_by
from dovetail.testing.local_session import LocalSession
from tests.support.asserts import change_queries, open_session
from tests.support.generators.cases import CHAINS, DEFAULT_LIMITS, CaseLimits, random_case

SCHEMA = pa.schema([("x", pa.int64()), ("y", pa.int64()), ("ts", pa.timestamp("us", tz="UTC"))])
ROWS = 160
NEVER_FILL = FillPolicy(lambda _cost: False)


def near(one: str, other: str) -> str:
    return f"{other}.ts BETWEEN {one}.ts - INTERVAL 1 SECOND AND {one}.ts + INTERVAL 1 SECOND"


PAIR = f"SELECT a.y FROM a JOIN b ON a.x = b.x AND {near('a', 'b')}"
CHAIN = f"SELECT a.x, c.y FROM a JOIN b ON a.x = b.x AND {near('a', 'b')} JOIN c ON b.y = c.y AND {near('b', 'c')}"
UNBOUNDED = "SELECT a.x, c.y FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y"

Open = Callable[..., LocalSession]


@pytest.fixture
def open_abc(tmp_path: Path) -> Iterator[Open]:
    """Sessions over streams a, b and c."""
    opened: list[LocalSession] = []

    def make(**options: Any) -> LocalSession:
        session = LocalSession(tmp_path / str(len(opened)), **options)
        opened.append(session)
        for name in "abc":
            session.create_stream(name, SCHEMA, event_time="ts", lateness="0 seconds")
        return session

    yield make
    for session in opened:
        session.close()


def push(session: LocalSession, second: int, x_values: int = ROWS, y_values: int = 2) -> None:
    ts = pa.array([second * 1_000_000 + i for i in range(ROWS)]).cast(SCHEMA.field("ts").type)
    columns = {"x": [i % x_values for i in range(ROWS)], "y": [i % y_values for i in range(ROWS)], "ts": ts}
    session.push({name: pa.table(columns) for name in "abc"})


def steps_of(steps: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for step in steps:
        yield step
        yield from steps_of(step["steps"])


def all_steps(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for probe in plan["probes"] for step in steps_of(probe["steps"])]


def test_json_is_plain_and_the_same_twice(open_abc: Open) -> None:
    session = open_abc(keep_intermediates="always")
    handle = session.create_query(CHAIN, "chain")
    session.create_query(PAIR, "pair")
    for second in range(3):
        push(session, second)
    for explain in (
        lambda form: explain_plan(session.engine, form),
        lambda form: explain_query(session.engine, handle.id, form),
    ):
        found = explain("json")
        assert json.loads(json.dumps(found, allow_nan=False)) == found
        assert json.dumps(explain("json")) == json.dumps(found)
        assert explain("text") == explain("text")


def test_another_format_is_refused(open_abc: Open) -> None:
    with pytest.raises(SessionError, match="no format 'xml'"):
        explain_plan(open_abc().engine, "xml")  # type: ignore[call-overload]


def test_a_session_without_queries_has_an_empty_plan(open_abc: Open) -> None:
    session = open_abc()
    assert explain_plan(session.engine, "json")["cost"]["queries"] == []
    assert "0 queries" in explain_plan(session.engine)


def test_what_is_not_known_is_none_in_json_and_unknown_in_text(open_abc: Open) -> None:
    session = open_abc()
    handle = session.create_query(CHAIN, "chain")
    plan = explain_plan(session.engine, "json")
    rows = plan["stores"][0]["rows"]
    assert (rows["a_batch"], rows["a_second"], rows["late_share"], rows["stored"]) == (None, None, None, None)
    assert rows["live"]["origin"] == "assumed"
    assert {step["observed_rows_per_probing_row"] for step in all_steps(plan)} == {None}
    assert {step["expected"]["basis"] for step in all_steps(plan)} == {"assumed"}
    assert plan["cost"]["basis"] == "assumed"
    assert plan["last_change"] is None
    query = explain_query(session.engine, handle.id, "json")
    assert (query["state"], query["created_batch"], query["complete_from"]) == ("pending", None, None)
    text = explain_plan(session.engine)
    assert "no batch has brought rows yet; 100,000 (assumed) are expected to be kept" in text
    assert re.search(r": [\d,]+ looked", text) is None
    assert "the plan has not changed since this process began" in text
    assert "is accepted and starts with the next batch\n" in explain_query(session.engine, handle.id)


def test_expected_and_observed_rows_stand_side_by_side(open_abc: Open) -> None:
    session = open_abc()
    session.create_query(PAIR, "pair")
    push(session, 0)
    (step,) = [step for step in all_steps(explain_plan(session.engine, "json")) if step["store"] == "b"]
    assert step["observed_rows_per_probing_row"]["value"] == 1.0
    assert step["expected"]["rows_per_probing_row"] == pytest.approx(1.0)
    assert step["expected"]["probing_rows"] == pytest.approx(ROWS)
    assert step["last_batch"] == {"looked_up": ROWS, "found": ROWS}
    text = explain_plan(session.engine)
    assert f"each new row of a looks up b by x: {ROWS} looked, {ROWS} found (for pair)" in text
    assert f"lately a row found 1; expected {ROWS} looked, {ROWS} found" in text


def test_two_equal_queries_pay_half_each(open_abc: Open) -> None:
    session = open_abc()
    handles = [session.create_query(PAIR, name) for name in ("one", "other")]
    push(session, 0)
    cost = explain_plan(session.engine, "json")["cost"]
    assert cost["alone_ms"] == pytest.approx(2 * cost["total_ms"])
    assert cost["saving_share"] == pytest.approx(0.5)
    for handle, other in zip(handles, ("other", "one"), strict=True):
        query = explain_query(session.engine, handle.id, "json")
        assert query["cost"]["share_ms"] == pytest.approx(query["cost"]["alone_ms"] / 2)
        assert query["cost"]["share_of_plan"] == pytest.approx(0.5)
        assert {tuple(step["shared_with"]) for path in query["paths"] for step in path["steps"]} == {(other,)}
        assert all(step["share_ms"] == step["step"]["cost_ms"] / 2 for path in query["paths"] for step in path["steps"])
        assert f"shared with {other}" in explain_query(session.engine, handle.id)


def test_two_equal_queries_read_every_row_once_instead_of_twice(open_abc: Open) -> None:
    session = open_abc()
    for name in ("one", "other"):
        session.create_query(PAIR, name)
    assert explain_plan(session.engine, "json")["cost"]["measured"] is None
    assert "sharing saves: not known before a batch has run by this plan" in explain_plan(session.engine)
    for second in range(3):
        push(session, second)
    work = explain_plan(session.engine, "json")["cost"]["measured"]
    # Nobody asked for c.
    assert (work["rows_read"], work["rows_read_alone"]) == (2 * ROWS, 4 * ROWS)
    assert work["reading_alone_ms"] == pytest.approx(2 * work["reading_ms"])
    assert work["joining_alone_ms"] == pytest.approx(2 * work["joining_ms"])
    assert work["saving_share"] == pytest.approx(0.5)
    assert "sharing saves 50% of the work" in explain_plan(session.engine)


def test_queries_planned_apart_that_take_one_step_share_it(open_abc: Open) -> None:
    """The optimizer sees different steps, as they want different rows; the runtime takes one."""
    session = open_abc()
    session.create_query(f"{PAIR} WHERE a.y = 0 AND b.y = 0", "even")
    session.create_query(f"{PAIR} WHERE a.y = 1 AND b.y = 1", "odd")
    for second in range(3):
        push(session, second)
    look = Look.at(session.engine)
    assert any(cost.run_as_one for cost in look.priced.book.steps)
    cost = explain_plan(session.engine, "json")["cost"]
    assert 0 < cost["saving_share"] < 0.5
    assert {tuple(step["queries"]) for step in all_steps(explain_plan(session.engine, "json"))} == {("even", "odd")}


def test_a_query_alone_pays_all_and_saves_nothing(open_abc: Open) -> None:
    session = open_abc()
    session.create_query(PAIR, "pair")
    push(session, 0)
    cost = explain_plan(session.engine, "json")["cost"]
    assert cost["saving_ms"] == 0.0
    assert cost["queries"][0]["share_ms"] == pytest.approx(cost["total_ms"])


def test_paths_name_every_start_and_its_steps_in_order(open_abc: Open) -> None:
    session = open_abc()
    handle = session.create_query(CHAIN, "chain")
    query = explain_query(session.engine, handle.id, "json")
    paths = {path["start"]: [step["step"]["store"] for step in path["steps"]] for path in query["paths"]}
    assert (paths["a"], paths["c"]) == (["b", "c"], ["b", "a"])
    assert query["sql"] == CHAIN


def test_a_self_join_has_a_path_for_each_of_its_starts(open_abc: Open) -> None:
    session = open_abc()
    handle = session.create_query(f"SELECT p.x FROM a p JOIN a q ON p.x = q.x AND {near('p', 'q')}", "self")
    push(session, 0)
    query = explain_query(session.engine, handle.id, "json")
    assert [(path["start"], path["store"], len(path["steps"])) for path in query["paths"]] == [
        ("p", "a", 1),
        ("q", "a", 1),
    ]
    assert "each new row of p (a) looks up q (a) by x" in explain_query(session.engine, handle.id)


def test_a_start_waits_for_its_intermediate_and_says_why(open_abc: Open) -> None:
    session = open_abc(keep_intermediates="always", fill_policy=NEVER_FILL)
    session.create_query(CHAIN, "chain", keep_intermediates=False)
    push(session, 0)
    handle = session.create_query(CHAIN, "late")

    def user() -> dict[str, Any]:
        (kept,) = explain_query(session.engine, handle.id, "json")["intermediates"]
        (found,) = kept["users"]
        assert (found["query"], found["start"]) == ("late", "c")
        assert explain_plan(session.engine, "json")["intermediates"] == [kept]
        return found

    assert user()["waits_because"] == "it begins with batch 1"
    push(session, 1)
    assert user()["waits_because"] == "it waits until everything older than batch 1 is dead"
    assert "yet for late: it waits until everything older than batch 1 is dead" in explain_plan(session.engine)
    for second in range(2, 6):
        push(session, second)
    assert user() == {"query": "late", "start": "c", "probes_now": True, "waits_because": None}
    assert "new rows of c look it up for late" in explain_query(session.engine, handle.id)


def test_a_start_without_time_bounds_waits_for_ever_and_says_so(open_abc: Open) -> None:
    session = open_abc(keep_intermediates="always", fill_policy=NEVER_FILL)
    session.create_query(UNBOUNDED, "first", keep_intermediates=False)
    push(session, 0)
    session.create_query(UNBOUNDED, "late")
    push(session, 1)
    assert "rows older than batch 1 never die for it" in explain_plan(session.engine)


def test_users_of_an_intermediate_share_its_upkeep_while_they_wait(open_abc: Open) -> None:
    session = open_abc(keep_intermediates="always", fill_policy=NEVER_FILL)
    session.create_query(CHAIN, "chain", keep_intermediates=False)
    push(session, 0)
    session.create_query(CHAIN, "late")
    push(session, 1)
    cost = explain_plan(session.engine, "json")["cost"]
    share_by_query = {each["query"]: each["share_ms"] for each in cost["queries"]}
    (kept,) = explain_plan(session.engine, "json")["intermediates"]
    assert kept["upkeep_ms"] > 0
    assert share_by_query["late"] - share_by_query["chain"] == pytest.approx(kept["upkeep_ms"])


def test_a_start_waits_for_a_fill_and_says_so(open_abc: Open) -> None:
    session = open_abc(keep_intermediates="always", fill_policy=FillPolicy(rows_a_batch=10))
    session.create_query(UNBOUNDED, "first", keep_intermediates=False)
    push(session, 0)
    session.create_query(UNBOUNDED, "late")
    push(session, 1)
    assert "it is being filled with rows older than batch 1" in explain_plan(session.engine)


@pytest.mark.parametrize("optimizer", ["greedy", "joint"])
def test_the_last_change_has_its_reasons_and_what_it_gained(open_abc: Open, optimizer: str) -> None:
    session = open_abc(optimizer=optimizer)
    session.create_query(CHAIN, "chain")
    for second in range(4):
        push(session, second, ROWS, 2)
    for second in range(4, 12):
        push(session, second, 2, ROWS)
    plan = explain_plan(session.engine, "json")
    change, noted = plan["last_change"], session.engine.plans.changes[-1]
    assert change["epoch"] == plan["epoch"]
    assert change["reasons"] == list(noted.reasons)
    assert any("a.x=b.x" in reason or "b.y=c.y" in reason for reason in change["reasons"])
    assert change["observed_before_ms"] == noted.observed_before_ms
    assert change["input_rows_after"] == 3 * ROWS
    text = explain_plan(session.engine)
    assert f"the plan changed last with batch {change['batch']} (epoch {plan['epoch']})" in text
    assert change["reasons"][0] in text
    if optimizer == "joint":
        assert change["expected_after_ms"] < change["expected_before_ms"]
    else:
        assert change["expected_after_ms"] is None
        assert "of work before" not in text


def test_a_created_query_is_a_change_that_comes_with_the_next_batch(open_abc: Open) -> None:
    session = open_abc()
    session.create_query(PAIR, "pair")
    push(session, 0)
    assert explain_plan(session.engine, "json")["next_change"] == []
    session.create_query(CHAIN, "chain")
    assert explain_plan(session.engine, "json")["next_change"][0] == "query chain was created"
    assert "the plan changes with the next batch" in explain_plan(session.engine)


def test_a_dropped_query_is_not_part_of_the_plan(open_abc: Open) -> None:
    session = open_abc()
    handle = session.create_query(PAIR, "pair")
    push(session, 0)
    session.drop_query("pair")
    query = explain_query(session.engine, handle.id, "json")
    assert (query["state"], query["cost"], query["paths"], query["stores"]) == ("dropped", None, [], [])
    assert "not part of the plan" in explain_query(session.engine, handle.id)


def test_long_lists_are_cut_in_text_only(open_abc: Open) -> None:
    session = open_abc()
    for number in range(12):
        session.create_query(f"{PAIR} WHERE a.y > {number}", f"q{number}")
    assert len(explain_plan(session.engine, "json")["cost"]["queries"]) == 12
    text = explain_plan(session.engine)
    assert "4 more queries" in text
    assert "4 more conditions" in text
    assert "and 6 more" in text


def test_every_key_of_the_json_form_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "explain.md").read_text(encoding="utf-8")
    found = [each for module in (costs, partitions, plan, steps, stores) for each in vars(module).values()]
    records = [each for each in found if isinstance(each, type) and is_dataclass(each)]
    names = {field.name for record in records for field in fields(record)}
    assert sorted(name for name in names if f"`{name}`" not in page and f'"{name}"' not in page) == []


def numbers_of(record: Any) -> Iterator[float]:
    if isinstance(record, dict):
        for value in record.values():
            yield from numbers_of(value)
    elif isinstance(record, list):
        for value in record:
            yield from numbers_of(value)
    elif isinstance(record, float):
        yield record


@pytest.mark.parametrize(("seed", "limits"), [(s, limits) for s in range(3) for limits in (CHAINS, DEFAULT_LIMITS)])
def test_whatever_runs_can_be_explained(seed: int, limits: CaseLimits, tmp_path: Path) -> None:
    case = random_case(seed, limits)
    session = open_session(case, tmp_path)
    handles: dict[str, Any] = {}
    for batch in range(len(case.batches)):
        change_queries(session, case, batch, handles)
        check_explained(session)
        session.push(case.tables(batch), splits=case.splits)
    session.close()


def check_explained(session: LocalSession) -> None:
    look = Look.at(session.engine)
    check_running_plan(look)
    plan = explain_plan(session.engine, "json")
    assert all(map(math.isfinite, numbers_of(plan)))
    cost = plan["cost"]
    assert math.fsum(each["share_ms"] for each in cost["queries"]) == pytest.approx(cost["total_ms"])
    assert math.fsum(each["alone_ms"] for each in cost["queries"]) == pytest.approx(cost["alone_ms"])
    text = explain_plan(session.engine)
    lines = text.splitlines()
    for store in plan["stores"]:
        assert any(line.lstrip("│├└─ ").startswith(f"{store['name']}: keeps ") for line in lines)
    assert text.count("; sees ") == len(all_steps(plan))
    assert_no_inner_names(text)
    for live in look.planned.queries:
        query = explain_query(session.engine, live.id, "json")
        (in_plan,) = [each for each in cost["queries"] if each["query"] == live.name]
        assert query["cost"] == in_plan
        own = explain_query(session.engine, live.id)
        assert own.count("; sees ") == sum(len(path["steps"]) for path in query["paths"])
        assert_no_inner_names(own)


def assert_no_inner_names(text: str) -> None:
    """Members, stored rows and canonical expressions are the engine's: users wrote aliases, streams and SQL."""
    text = re.split("the plan change[sd] ", text)[0]
    assert re.findall(r"\bm\d\.|\brow\.|\br\d\.|\b(?:eq|gt|lt|ge|le|and|or|is_not_null)\(|:bigint", text) == []


def check_running_plan(look: Look) -> None:
    """The joint plan that is priced visits the same stores as the shared plan that runs."""
    running = look.priced.running
    for tree in look.plan.trees:
        for node in tree.walk():
            for leg in node.legs:
                target = running.path_by_taker[leg.query, leg.start].steps[node.member - 1].target
                if target.is_base:
                    assert node.step.target == target.relations[0].partition("#")[0]
                else:
                    assert target in running.joins_by_store[node.step.target]
    kept = look.planned.decisions.intermediates
    assert set(running.joins_by_store) == {each.intermediate.id for each in kept}
    assert {maintained_by(each.intermediate) for each in kept} <= {query for query, _ in running.path_by_taker}
