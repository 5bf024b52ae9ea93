"""Plans follow what the engine observes, at batch edges, and answers stay what they are."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dovetail.optimizer.passes.choose_statistics import replan_reasons
from dovetail.testing.local_session import LocalSession

SCHEMA = pa.schema([("x", pa.int64()), ("y", pa.int64()), ("ts", pa.timestamp("us", tz="UTC"))])
SQL = (
    "SELECT a.x AS ax, c.y AS cy FROM a "
    "JOIN b ON a.x = b.x AND b.ts BETWEEN a.ts - INTERVAL 1 SECOND AND a.ts + INTERVAL 1 SECOND "
    "JOIN c ON b.y = c.y AND c.ts BETWEEN b.ts - INTERVAL 1 SECOND AND b.ts + INTERVAL 1 SECOND"
)
ROWS = 160
"""Enough that work, not what every step costs in any case, decides between plans."""


def rows(second: int, x_values: int, y_values: int, count: int = ROWS) -> pa.Table:
    ts = pa.array([second * 1_000_000 + i for i in range(count)]).cast(SCHEMA.field("ts").type)
    return pa.table({"x": [i % x_values for i in range(count)], "y": [i % y_values for i in range(count)], "ts": ts})


def open_abc(folder: Path, **options: Any) -> LocalSession:
    session = LocalSession(folder, **options)
    for name in "abc":
        session.create_stream(name, SCHEMA, event_time="ts", lateness="0 seconds")
    session.create_query(SQL, "q")
    return session


def first_probe_of_b(session: LocalSession) -> str:
    plan = session.engine.plans.planned().plan
    (tree,) = [tree for tree in plan.trees if tree.start == "b"]
    (node,) = tree.children
    return node.step.target


@pytest.mark.parametrize("optimizer", ["greedy", "joint"])
def test_the_order_turns_when_the_data_do(tmp_path: Path, optimizer: str) -> None:
    session = open_abc(tmp_path, optimizer=optimizer)
    pushed: list[dict[str, pa.Table]] = []

    def push(second: int, x_values: int, y_values: int) -> None:
        pushed.append({name: rows(second, x_values, y_values) for name in "abc"})
        session.push(pushed[-1])

    for second in range(4):
        push(second, ROWS, 2)
    assert first_probe_of_b(session) == "a", "one partner in a, half of all in c"
    epoch = session.engine.plans.planned().plan.epoch
    for second in range(4, 12):
        push(second, 2, ROWS)
    assert first_probe_of_b(session) == "c", "now it is the other way round"
    assert session.engine.plans.planned().plan.epoch > epoch
    assert any("meet" in reason for change in session.engine.plans.changes for reason in change.reasons)
    answers = session.results("q")
    assert Counter(zip(*(answers.column(name).to_pylist() for name in ("ax", "cy")), strict=True)) == _expected(pushed)
    session.close()


@pytest.mark.parametrize("later_count", [ROWS, 4 * ROWS], ids=["the same data", "more of them"])
@pytest.mark.parametrize("optimizer", ["greedy", "joint"])
def test_what_gives_the_same_plan_makes_no_epoch(tmp_path: Path, optimizer: str, later_count: int) -> None:
    session = open_abc(tmp_path, optimizer=optimizer)
    for second in range(4):
        session.push({name: rows(second, ROWS, 2) for name in "abc"})
    epoch = session.engine.plans.planned().plan.epoch
    stats = session.engine.head.statistics
    for second in range(4, 10):
        session.push({name: rows(second, ROWS, 2, later_count) for name in "abc"})
    assert bool(replan_reasons(stats, session.engine.head.statistics, session.engine.plans.planned().asked)) == (
        later_count > ROWS
    )
    assert session.engine.plans.planned().plan.epoch == epoch
    session.close()


def test_a_static_plan_stays_whatever_the_data_do(tmp_path: Path) -> None:
    session = open_abc(tmp_path, replan=False)
    for second in range(4):
        session.push({name: rows(second, ROWS, 2) for name in "abc"})
    first = first_probe_of_b(session)
    for values in ((ROWS, 2), (2, ROWS)):
        for second in range(4):
            session.push({name: rows(second, *values) for name in "abc"})
        assert first_probe_of_b(session) == first
    assert session.engine.plans.changes == ()
    session.close()


def test_changes_of_queries_are_the_reasons_of_a_new_plan(tmp_path: Path) -> None:
    session = open_abc(tmp_path)
    session.push({name: rows(0, ROWS, 2) for name in "abc"})
    session.create_query("SELECT a.x AS x FROM a JOIN b ON a.y = b.y WITHIN 1 SECOND", "other")
    session.push({name: rows(1, ROWS, 2) for name in "abc"})
    assert "query other was created" in session.engine.plans.changes[-1].reasons
    session.drop_query("other")
    session.push({name: rows(2, ROWS, 2) for name in "abc"})
    assert "query other ended" in session.engine.plans.changes[-1].reasons
    session.close()


def _expected(pushed: list[dict[str, pa.Table]]) -> Counter[tuple[int, int]]:
    def of(name: str) -> list[tuple[int, int, int]]:
        tables = [batch[name] for batch in pushed]
        whole = pa.concat_tables(tables)
        times = whole.column("ts").cast(pa.int64()).to_pylist()
        return list(zip(whole.column("x").to_pylist(), whole.column("y").to_pylist(), times, strict=True))

    pairs = [(a, b) for a in of("a") for b in of("b") if a[0] == b[0] and abs(a[2] - b[2]) <= 1_000_000]
    by_y: dict[int, list[tuple[int, int, int]]] = {}
    for c in of("c"):
        by_y.setdefault(c[1], []).append(c)
    return Counter((a[0], c[1]) for a, b in pairs for c in by_y.get(b[1], []) if abs(c[2] - b[2]) <= 1_000_000)
