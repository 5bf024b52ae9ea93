"""A planner that works while batches run: no batch waits, and no answer is taken over that is not better."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from dovetail.engine.options import make_options
from dovetail.engine.planning import joint_planner
from dovetail.engine.planning.joint_planner import JointMemory, JointPlanner
from dovetail.frontend.compile_sql import compile_sql
from dovetail.optimizer.decisions import Decisions
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


class Joint:
    """Decides batch after batch, with the memory that each leaves to the next."""

    def __init__(self, *, plan_in_background: bool = False) -> None:
        options = make_options(optimizer="joint", keep_intermediates="by cost", plan_in_background=plan_in_background)
        self.planner = JointPlanner(options, DEFAULT_UNIT_COSTS)
        self.memory = JointMemory()

    def __call__(self, queries: tuple[LiveQuery, ...], stats: StatsCatalog) -> Decisions:
        decisions, self.memory = self.planner.decide(self.memory, queries, STREAMS, stats)
        return decisions


def test_no_batch_waits_for_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    may_answer = threading.Event()
    real = joint_planner.answer

    def slow(question: joint_planner.Question) -> object:
        may_answer.wait(30)
        return real(question)

    monkeypatch.setattr(joint_planner, "answer", slow)
    joint = Joint(plan_in_background=True)
    queries = (live("one"),)
    assert joint(queries, KNOWN).orders == {}, "greedy until there is an answer"
    assert joint(queries, KNOWN).orders == {}
    may_answer.set()
    assert joint.memory.asking is not None
    joint.memory.asking.wait()
    assert joint(queries, KNOWN).intermediates


def test_a_failed_question_leaves_the_running_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    joint = Joint()
    queries = (live("one"),)
    before = joint(queries, KNOWN)

    def failing(_question: joint_planner.Question) -> object:
        raise ZeroDivisionError

    monkeypatch.setattr(joint_planner, "answer", failing)
    assert joint(queries, replace(KNOWN)) == before


def test_nothing_is_planned_by_assumptions_alone() -> None:
    assert Joint()((live("one"),), StatsCatalog()).orders == {}


def test_a_dropped_query_takes_along_only_what_nobody_else_uses() -> None:
    joint = Joint()
    one, other = live("one"), live("other")
    both = joint((one, other), KNOWN)
    alone = joint((other,), KNOWN)
    assert [kept.intermediate for kept in alone.intermediates] == [kept.intermediate for kept in both.intermediates]
    assert {use.query for kept in alone.intermediates for use in kept.uses} == {"other"}
    assert all(query != "one" for query, _ in alone.orders)
    assert joint((), KNOWN).intermediates == ()


def test_figures_that_move_a_little_change_no_decision() -> None:
    joint = Joint()
    queries = (live("one"),)
    before = joint(queries, KNOWN)
    moved = replace(KNOWN, rows_in_window={stream: rows * 1.1 for stream, rows in KNOWN.rows_in_window.items()})
    assert joint(queries, moved) == before
    assert joint.memory.gain[0] is not None


def test_other_data_turn_the_decision() -> None:
    joint = Joint()
    queries = (live("one"),)
    joint(queries, KNOWN)
    turned = StatsCatalog(
        rows_in_window={"r": 1e3, "s": 1e3, "t": 1e3, "u": 1e6},
        key_match={"r.a=s.a": 1e-4, "s.b=t.b": 1e-5, "t.c=u.c": 1e-3},
    )
    (kept,) = joint(queries, turned).intermediates
    assert [(use.query, use.wanted_starts) for use in kept.uses] == [("one", ("u",))]
    before, after = joint.memory.gain
    assert before is not None
    assert after is not None
    assert after < before


def test_who_only_looks_leaves_the_memory_as_it_is() -> None:
    joint = Joint()
    queries = (live("one"),)
    memory = joint.memory
    looked, _ = joint.planner.decide(joint.planner.for_preview(memory), queries, STREAMS, KNOWN)
    assert looked.intermediates
    assert (memory, memory.current, memory.asked) == (JointMemory(), None, None)
    assert joint(queries, KNOWN) == looked
