"""A planner that works while batches run: no batch waits, and no answer is taken over that is not better."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from dovetail.engine.options import make_options
from dovetail.engine.planning import joint_planner
from dovetail.engine.planning.joint_planner import JointPlanner
from dovetail.frontend.compile_sql import compile_sql
from dovetail.plan.live_query import LiveQuery
from dovetail.query.stream import Stream
from dovetail.query.types import BIGINT, TIMESTAMP
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.unit_costs import DEFAULT_UNIT_COSTS

COLUMNS = (("a", BIGINT), ("b", BIGINT), ("c", BIGINT), ("ts", TIMESTAMP))
STREAMS = {name: Stream(name, COLUMNS, "ts") for name in "rstu"}
KNOWN = StatsCatalog(
    rows_in_window={"r": 1e6, "s": 1e3, "t": 1e3, "u": 1e3},
    key_match={"r.a=s.a": 1e-3, "s.b=t.b": 1e-5, "t.c=u.c": 1e-4},
)


def live(name: str) -> LiveQuery:
    sql = "SELECT r.a FROM r JOIN s ON r.a = s.a JOIN t ON s.b = t.b JOIN u ON t.c = u.c"
    return LiveQuery(name, name, compile_sql(sql, STREAMS, timezone="UTC"))


def planner(*, plan_in_background: bool = False) -> JointPlanner:
    options = make_options(optimizer="joint", keep_intermediates="by cost", plan_in_background=plan_in_background)
    return JointPlanner(options, DEFAULT_UNIT_COSTS)


def test_no_batch_waits_for_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    may_answer = threading.Event()
    real = joint_planner.answer

    def slow(question: joint_planner.Question) -> object:
        may_answer.wait(30)
        return real(question)

    monkeypatch.setattr(joint_planner, "answer", slow)
    joint = planner(plan_in_background=True)
    queries = (live("one"),)
    assert joint(queries, STREAMS, KNOWN, 1).orders == {}, "greedy until there is an answer"
    assert joint(queries, STREAMS, KNOWN, 2).orders == {}
    may_answer.set()
    joint.wait()
    assert joint(queries, STREAMS, KNOWN, 3).intermediates


def test_a_failed_question_leaves_the_running_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    joint = planner()
    queries = (live("one"),)
    before = joint(queries, STREAMS, KNOWN, 1)

    def failing(_question: joint_planner.Question) -> object:
        raise ZeroDivisionError

    monkeypatch.setattr(joint_planner, "answer", failing)
    assert joint(queries, STREAMS, replace(KNOWN), 2) == before


def test_nothing_is_planned_by_assumptions_alone() -> None:
    assert planner()((live("one"),), STREAMS, StatsCatalog(), 1).orders == {}


def test_a_dropped_query_takes_along_only_what_nobody_else_uses() -> None:
    joint = planner()
    one, other = live("one"), live("other")
    both = joint((one, other), STREAMS, KNOWN, 1)
    alone = joint((other,), STREAMS, KNOWN, 2)
    assert [kept.intermediate for kept in alone.intermediates] == [kept.intermediate for kept in both.intermediates]
    assert {use.query for kept in alone.intermediates for use in kept.uses} == {"other"}
    assert all(query != "one" for query, _ in alone.orders)
    assert joint((), STREAMS, KNOWN, 3).intermediates == ()


def test_figures_that_move_a_little_change_no_decision() -> None:
    joint = planner()
    queries = (live("one"),)
    before = joint(queries, STREAMS, KNOWN, 1)
    moved = replace(KNOWN, rows_in_window={stream: rows * 1.1 for stream, rows in KNOWN.rows_in_window.items()})
    assert joint(queries, STREAMS, moved, 2) == before
    assert joint.take_gain()[0] is not None
    assert joint.take_gain() == (None, None), "told once"


def test_other_data_turn_the_decision() -> None:
    joint = planner()
    queries = (live("one"),)
    joint(queries, STREAMS, KNOWN, 1)
    turned = StatsCatalog(
        rows_in_window={"r": 1e3, "s": 1e3, "t": 1e3, "u": 1e6},
        key_match={"r.a=s.a": 1e-4, "s.b=t.b": 1e-5, "t.c=u.c": 1e-3},
    )
    (kept,) = joint(queries, STREAMS, turned, 2).intermediates
    assert [(use.query, use.wanted_starts) for use in kept.uses] == [("one", ("u",))]
    before, after = joint.take_gain()
    assert before is not None
    assert after is not None
    assert after < before
