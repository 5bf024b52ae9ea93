"""Intermediates that are filled from live stores while queries run: exact answers, small chunks, whatever fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

import pytest

from dovetail.engine.planning.fill_intermediates import FillPolicy
from dovetail.engine.planning.should_fill import should_fill
from dovetail.optimizer.decisions import Decide, Decisions, keep_intermediates
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.shared_plan import SharedPlan
from dovetail.query.stream import Stream
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.local.run_local import run_local
from dovetail.runtime.message import Message
from dovetail.stats.catalog import StatsCatalog
from dovetail.testing.faults import CRASH_STEPS, Faults, SimulatedCrash
from dovetail.testing.local_session import LocalSession
from tests.support.asserts import assert_same_answers
from tests.support.cases import EngineCase, QueryCase, StreamCase, moment_of
from tests.support.generators.cases import START_US
from tests.support.generators.chain_cases import COLUMNS
from tests.support.oracles.answers import DuckDbOracle, answers_of_table
from tests.support.restless import bundles_of_few

BATCHES = 14
KEPT_FROM = 5
ROWS = 6
STORE = "(a * b)[0.k=1.k]"
JOINED = "FROM a JOIN b ON a.k = b.k JOIN c ON b.j = c.j"
CHAIN = f"SELECT a.v AS av, b.v AS bv, c.v AS cv {JOINED}"


def case_of(*queries: tuple[str, str, int], batches: int = BATCHES) -> EngineCase:
    """Streams a, b and c with a few rows a batch, and queries as (name, text, first batch)."""
    rng = Random(7)
    rows = tuple(
        {
            name: tuple(
                (rng.randrange(4), rng.randrange(4), rng.randrange(6), moment_of(START_US + batch * 1_000_000))
                for _ in range(ROWS)
            )
            for name in "abc"
        }
        for batch in range(batches)
    )
    streams = tuple(StreamCase(name, COLUMNS, "ts", 0) for name in "abc")
    return EngineCase(streams, rows, tuple(QueryCase(name, sql, sql, sql, at) for name, sql, at in queries))


def kept_by(users: Callable[[int], set[str]]) -> Decide:
    """Nothing is kept but the joins of these queries, by batch."""

    def decide(
        queries: tuple[LiveQuery, ...], streams: Mapping[str, Stream], stats: StatsCatalog, batch: int
    ) -> Decisions:
        return keep_intermediates(tuple(q for q in queries if q.name in users(batch)), streams, stats, batch)

    return decide


class Running:
    """A session over a case, and the plan and the task of every batch that it ran."""

    def __init__(
        self,
        case: EngineCase,
        root: Path,
        users: Callable[[int], set[str]],
        budget_rows: int = 8,
        *,
        may_fill: bool = True,
    ) -> None:
        self.case = case
        self._root = root
        self._users = users
        self._policy = FillPolicy(should_fill if may_fill else lambda _cost: False, rows_a_batch=budget_rows)
        self.tasks: list[BatchTask] = []
        self.session = self._open(Faults())

    def _open(self, faults: Faults) -> LocalSession:
        self._faults = faults
        session = LocalSession(
            self._root, decide=kept_by(self._users), fill_policy=self._policy, merge_fanout=2, faults=faults
        )
        for stream in self.case.streams:
            session.create_stream(stream.name, stream.schema, event_time="ts")
        return session

    def run(self, crash_at: Mapping[int, str] | None = None) -> Running:
        for batch in range(len(self.case.batches)):
            for query in self.case.queries:
                if query.created_at == batch:
                    self.session.create_query(query.sql, name=query.name)
            crash = (crash_at or {}).get(batch)
            if crash is not None:
                self.restart(Faults(crash_at=crash))
                with pytest.raises(SimulatedCrash):
                    self.push(batch)
                self.restart(Faults())
            self.push(batch)
        return self

    def restart(self, faults: Faults) -> None:
        self.session.close()
        self.session = self._open(faults)

    def push(self, batch: int) -> None:
        def run(task: BatchTask) -> list[Message]:
            self.tasks.append(task)
            return run_local(task, self.case.tables(batch), after_source=lambda: self._faults.on_step("after_source"))

        self.session.engine.batches.run(batch, run)

    def check(self) -> None:
        oracle = DuckDbOracle(self.case)
        for record in self.session.engine.queries.records():
            query = next(query for query in self.case.queries if query.name == record.name)
            expected = oracle.expected(query, record.complete_from or 0)
            assert expected, "the test needs answers"
            assert_same_answers(answers_of_table(self.session.results(query.name)), expected, query.name)

    def filling_batches(self) -> list[int]:
        return [task.batch for task in self.tasks if task.plan.fills]

    def probing_batches(self) -> list[int]:
        """When new rows of c probe the kept join."""
        return [task.batch for task in self.tasks if probes(task.plan)]


def probes(plan: SharedPlan) -> bool:
    return any(node.step.target == STORE for tree in plan.trees for node in tree.walk() if tree.start == "c")


def from_batch_five(names: str = "q") -> Callable[[int], set[str]]:
    return lambda batch: set(names.split()) if batch >= KEPT_FROM else set()


def test_a_join_without_time_bounds_is_filled_in_chunks_and_then_probed(tmp_path: Path) -> None:
    running = Running(case_of(("q", CHAIN, 0)), tmp_path, from_batch_five()).run()
    running.check()
    # Five batches of six rows, at most eight a batch.
    assert running.filling_batches() == [5, 6, 7, 8]
    assert running.probing_batches() == list(range(9, BATCHES))
    filled = [sum(chunk.rows for chunk in task.fill_chunks) for task in running.tasks]
    assert filled == [0] * 5 + [8, 8, 8, 6] + [0] * 5
    text = str(running.session.engine.plans.planned().plan.text_tree({}))
    assert f"m1 = {STORE}" in text


def test_the_plan_s_text_tells_of_a_fill(tmp_path: Path) -> None:
    running = Running(case_of(("q", CHAIN, 0), batches=6), tmp_path, from_batch_five()).run()
    text = str(running.session.engine.plans.planned().plan.text_tree({}))
    assert f"{STORE} from stored a of batches before 5" in text
    assert "batches before 5" in text
    assert running.session.engine.plans.planned().plan.hop_count == 2


def test_without_a_fill_it_is_never_probed(tmp_path: Path) -> None:
    running = Running(case_of(("q", CHAIN, 0)), tmp_path, from_batch_five(), may_fill=False)
    running.run().check()
    assert running.probing_batches() == []


@pytest.mark.parametrize(
    ("step", "batch"),
    [
        # In the first, a middle and the last chunk of the fill; all pairs in `make test-all`.
        pytest.param(step, batch, marks=() if place % 3 == number else pytest.mark.slow)
        for place, step in enumerate(CRASH_STEPS)
        for number, batch in enumerate([5, 6, 8])
    ],
)
def test_a_crash_in_the_middle_of_a_fill_loses_and_doubles_nothing(tmp_path: Path, step: str, batch: int) -> None:
    running = Running(case_of(("q", CHAIN, 0), batches=11), tmp_path, from_batch_five()).run({batch: step})
    running.check()
    assert set(running.probing_batches()) == {9, 10}


def test_a_fill_ends_with_its_intermediate_and_a_later_one_begins_anew(tmp_path: Path) -> None:
    running = Running(
        case_of(("q", CHAIN, 0)), tmp_path, lambda batch: {"q"} if batch in (5, 6, *range(8, 14)) else set()
    )
    running.run().check()
    assert running.filling_batches() == [5, 6, *range(8, 14)]
    assert {task.plan.fills[0].before_batch for task in running.tasks if task.batch >= 8} == {8}


def test_a_query_that_asks_for_more_comes_in_when_the_fill_is_over(tmp_path: Path) -> None:
    more = f"SELECT a.v AS av, b.j AS bj, c.v AS cv, a.j AS aj {JOINED}"
    running = Running(case_of(("q", CHAIN, 0), ("more", more, 6)), tmp_path, from_batch_five("q more")).run()
    running.check()
    assert running.filling_batches() == [5, 6, 7, 8]
    columns = {task.batch: task.plan.store(STORE).columns for task in running.tasks if task.batch >= 5}
    assert all("0.j" not in columns[batch] for batch in (5, 6, 7, 8))
    assert "0.j" in columns[9]


def test_a_query_that_asks_for_no_more_may_come_in_during_a_fill(tmp_path: Path) -> None:
    less = f"SELECT a.v AS av, c.v AS cv {JOINED}"
    running = Running(
        case_of(("q", CHAIN, 0), ("less", less, 0)), tmp_path, lambda b: from_batch_five("q" if b < 7 else "q less")(b)
    ).run()
    running.check()
    users = {
        leg.query
        for tree in running.tasks[-1].plan.trees
        for node in tree.walk()
        for leg in node.legs
        if node.step.target == STORE
    }
    assert len(users) == 2


def test_the_rows_of_one_user_do_not_hide_behind_what_another_asks(tmp_path: Path) -> None:
    """`other` selects by a column that a's buckets lack at first; q's rows of those must still be joined."""
    one = f"SELECT a.v AS av, c.v AS cv {JOINED} WHERE a.v > 1"
    other = f"SELECT c.v AS cv, b.v AS bv {JOINED} WHERE a.j = 2"
    running = Running(
        case_of(("q", one, 0), ("other", other, 0)), tmp_path, lambda batch: {"q"} if batch < 6 else {"q", "other"}
    ).run()
    running.check()
    assert running.probing_batches() == list(range(BATCHES))


@pytest.mark.parametrize("fanout", [2, 1000])
def test_fills_do_not_change_what_is_known_of_joins(tmp_path: Path, fanout: int) -> None:
    case = case_of(("q", CHAIN, 0), batches=8)
    with bundles_of_few(fanout):
        filled = Running(case, tmp_path / "filled", from_batch_five()).run()
        waiting = Running(case, tmp_path / "waiting", from_batch_five(), may_fill=False)
        waiting.run()
    known, other = (r.session.engine.head.statistics.observed for r in (filled, waiting))
    stored = f"rows stored in {STORE}"
    assert {str(f): t for f, t in known.tallies.items() if str(f) != stored} == {
        str(f): t for f, t in other.tallies.items() if str(f) != stored
    }
    assert known.keys == other.keys


def test_a_bounded_wait_that_is_short_is_not_filled(tmp_path: Path) -> None:
    near = f"{CHAIN} WHERE " + " AND ".join(
        f"{later}.ts BETWEEN {earlier}.ts AND {earlier}.ts + INTERVAL 1 SECOND" for earlier, later in ("ab", "bc")
    )
    case = case_of(("q", near, 0))
    running = Running(case, tmp_path, from_batch_five())
    running.run().check()
    assert running.filling_batches() == []
    assert any("(a * b)" in node.step.target for tree in running.tasks[-1].plan.trees for node in tree.walk())
