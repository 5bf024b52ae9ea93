"""A fault at every place where a query's text meets data: its query is stopped, and nobody else notices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dovetail.core.errors import TaskFailed, WorkerLost
from dovetail.engine.batch import begin_batch, find_culprits, settle_batch
from dovetail.kernels.evaluate import evaluate, kernels
from dovetail.kernels.evaluate import numbers as number_kernels
from dovetail.plan.shared_plan import SharedPlan
from dovetail.query.expression import Expression
from dovetail.query.types import DOUBLE
from dovetail.runtime import answer_files, hop_operator, report, result_sink
from dovetail.runtime.groups import fold_rows, folder, limited_answers
from dovetail.runtime.local import run_local
from dovetail.runtime.probe import decide_pairs, hop_probe
from dovetail.runtime.source import build_index, key_codes
from dovetail.testing.local_session import LocalSession
from tests.support.neighbours import BATCHES, NEAR, NEIGHBOURS, SCHEMA, Answers, is_stopped, run

CULPRIT = f"SELECT a.d, sqrt(b.d) AS r FROM a JOIN b ON a.d = b.d AND {NEAR} WHERE a.v > -9 AND a.d + b.d > -1"
GROUPS = f"SELECT a.d, MAX(b.d) AS r FROM a JOIN b ON a.d = b.d AND {NEAR} GROUP BY a.d"
RESIDUAL_GROUPS = GROUPS.replace(" GROUP BY", " AND a.v < b.v + 99 GROUP BY")
"""Alone in joining and grouping by doubles, which tells a fault whom to strike."""
SHARING = f"{NEIGHBOURS['pairs']} WHERE a.v > 0"
WHAT: list[Exception] = [
    MemoryError(),
    pa.ArrowMemoryError("malloc of size 8589934592 failed"),
    pa.ArrowInvalid("offset overflow while concatenating arrays"),
    pa.ArrowCapacityError("array cannot contain more than 2147483646 bytes"),
    KeyError("nobody foresaw this"),
]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    answers, _ = run(tmp_path_factory.mktemp("undisturbed"), None)
    assert all(answers.values())
    return answers


def _breaking(function: Callable[..., Any], error: Exception, is_culprit: Callable[..., bool]) -> Callable[..., Any]:
    def broken(*args: Any, **named: Any) -> Any:
        if is_culprit(*args, **named):
            raise error
        return function(*args, **named)

    return broken


def _has_doubles(columns: list[pa.Array], *_: Any) -> bool:
    return any(pa.types.is_floating(column.type) for column in columns)


def _is_of_culprit(query: str) -> bool:
    return query.startswith("culprit")


def _queries_with(decider: decide_pairs.PairDecider, residual: Expression) -> Iterator[str]:
    for asked in decider._facts.residuals:
        if asked.predicate == residual:
            yield from (decider._hop.legs[number].leg.query for number in asked.legs)


PLACES: dict[str, tuple[str, Any, str, Callable[..., bool]]] = {
    "evaluating a projection": (CULPRIT, number_kernels.NUMBERS, "sqrt", lambda *_: True),
    "hashing keys": (CULPRIT, key_codes, "hash_keys", _has_doubles),
    "sorting an index": (CULPRIT, build_index, "key_codes", lambda index, *_: index.keys[0].type == DOUBLE),
    "matching": (
        CULPRIT,
        hop_probe.HopProbe,
        "_probe_together",
        lambda self, _rows, stretches, *_: any(map(_is_of_culprit, self._queries_at(each.node for each in stretches))),
    ),
    "deciding a residual": (
        CULPRIT,
        decide_pairs.PairDecider,
        "_holds",
        lambda self, predicate, *_: any(map(_is_of_culprit, _queries_with(self, predicate))),
    ),
    "counting at a shared step": (
        SHARING,
        report.TaskReport,
        "count",
        lambda _, query, *__: _is_of_culprit(query),
    ),
    "waiting": (
        CULPRIT,
        result_sink.ResultSink,
        "add_alike",
        lambda _, __, queries, *___: any(map(_is_of_culprit, queries)),
    ),
    "gathering values": (
        CULPRIT,
        result_sink.ResultSink,
        "_values",
        lambda _, output, *__: any(column.name == "r" for column in output),
    ),
    "writing": (CULPRIT, answer_files.AnswerFiles, "write", lambda _, query, *__: _is_of_culprit(query)),
    "grouping": (GROUPS, folder, "fold_rows", lambda group, *_: group.keys[0][1] == DOUBLE),
    "folding": (
        RESIDUAL_GROUPS,
        fold_rows,
        "fold_extremes",
        lambda values, *_, **__: pa.types.is_floating(values.type),
    ),
    "answering groups": (GROUPS, limited_answers, "answer_groups", lambda user, *_: _is_of_culprit(user.query)),
    "writing groups": (GROUPS, answer_files.AnswerFiles, "write", lambda _, query, *__: _is_of_culprit(query)),
}


@pytest.mark.parametrize("error", WHAT, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("place", PLACES)
def test_a_fault_stops_its_query_alone(
    place: str, error: Exception, undisturbed: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql, home, name, is_culprit = PLACES[place]

    def plant(_: LocalSession) -> None:
        if isinstance(home, dict):
            # A kernel that was made broken must not be remembered.
            monkeypatch.setattr(evaluate, "_kernel", kernels.kernel_of)
            monkeypatch.setitem(kernels.FUNCTIONS, name, _breaking(home[name], error, is_culprit))
        else:
            monkeypatch.setattr(home, name, _breaking(getattr(home, name), error, is_culprit))

    answers, culprit = run(tmp_path, sql, after=plant, at=1)
    assert answers == undisturbed
    assert is_stopped(culprit)


def _runs_culprit(plan: SharedPlan) -> bool:
    return any(_is_of_culprit(query) for query, _ in plan.complete_from_by_query)


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("error", [KeyError("nobody foresaw this"), WorkerLost("gone")], ids=["raised", "gone"])
@pytest.mark.parametrize("stage", ["run_source", "run_hops"])
def test_the_culprit_of_a_batch_that_just_fails_is_found(
    stage: str, error: Exception, at: int, undisturbed: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = _breaking(getattr(run_local, stage), error, lambda task, *_: _runs_culprit(task.plan))
    monkeypatch.setattr(run_local, stage, broken)
    answers, culprit = run(tmp_path, CULPRIT, at=at)
    assert answers == undisturbed
    assert is_stopped(culprit)
    assert culprit is not None
    assert culprit.failed_batch == at


def test_tries_of_a_batch_leave_nothing_in_what_planning_remembers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = _breaking(run_local.run_source, KeyError(), lambda task, *_: _runs_culprit(task.plan))
    monkeypatch.setattr(run_local, "run_source", broken)
    with LocalSession(tmp_path) as session:
        for name in ("a", "b", "c"):
            session.create_stream(name, SCHEMA, "ts")
        for name, sql in NEIGHBOURS.items():
            session.create_query(sql, name)
        session.push(BATCHES[0])
        planner = session.engine.plans._planner
        before = planner.memory
        session.create_query(CULPRIT, "culprit")
        session.push(BATCHES[1])
        assert planner.running is not None
        assert not _runs_culprit(planner.running.plan)
        assert planner.memory.drawn is before.drawn
        assert planner.memory.joint == before.joint


def test_the_culprit_of_a_plan_that_cannot_be_made_is_found(
    undisturbed: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_culprit(_root: Any, _options: Any, plan: Any, *_: Any) -> bool:
        return _runs_culprit(plan.planned.plan)

    monkeypatch.setattr(begin_batch, "make_task", _breaking(begin_batch.make_task, RecursionError(), is_culprit))
    answers, culprit = run(tmp_path, CULPRIT, at=1)
    assert answers == undisturbed
    assert is_stopped(culprit)


def test_the_culprit_of_a_state_that_cannot_be_made_is_found(
    undisturbed: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = _breaking(settle_batch.next_state, ZeroDivisionError(), lambda _, plan, *__: _runs_culprit(plan))
    monkeypatch.setattr(settle_batch, "next_state", broken)
    answers, culprit = run(tmp_path, CULPRIT, at=1)
    assert answers == undisturbed
    assert is_stopped(culprit)


def test_a_worker_that_is_gone_once_is_nobodys_fault(
    undisturbed: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once: Iterator[bool] = iter([True])
    broken = _breaking(hop_operator.run_hops, WorkerLost("gone"), lambda *_: next(once, False))
    monkeypatch.setattr(run_local, "run_hops", broken)
    answers, culprit = run(tmp_path, CULPRIT, at=0)
    assert answers == undisturbed
    assert not is_stopped(culprit)


def test_a_batch_that_fails_without_any_query_ends_the_session_with_what_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_local, "run_hops", _breaking(hop_operator.run_hops, KeyError("lost"), lambda *_: True))
    with pytest.raises(TaskFailed, match="KeyError: 'lost'"):
        run(tmp_path, CULPRIT)


def _nothing_of(_query: str) -> frozenset[str]:
    return frozenset()


@pytest.mark.parametrize("guilty", [{"q0"}, {"q7"}, {"q3", "q4"}, {"q0", "q5", "q7"}, {"n0"}, {"n1", "q2"}])
def test_every_culprit_is_found_and_nobody_else(guilty: set[str]) -> None:
    old, new = [f"q{i}" for i in range(8)], ["n0", "n1"]
    tries: list[set[str]] = []

    def attempt(stopped: Any) -> Any:
        tries.append(set(stopped))
        if guilty - set(stopped):
            raise TaskFailed("fails")
        return set(stopped)

    assert find_culprits.run_without_culprits(attempt, old, new, TaskFailed("fails"), _nothing_of) == guilty
    assert len(tries) <= 6 * len(guilty)


def test_a_new_query_is_found_in_one_try() -> None:
    tries: list[set[str]] = []

    def attempt(stopped: Any) -> Any:
        tries.append(set(stopped))
        if "n" not in stopped:
            raise TaskFailed("fails")
        return set(stopped)

    old = [f"q{i}" for i in range(100)]
    assert find_culprits.run_without_culprits(attempt, old, ["n"], TaskFailed("fails"), _nothing_of) == {"n"}
    assert tries == [{"n"}]


@pytest.mark.parametrize(("place", "most"), [(99, 1), (98, 5), (90, 8), (50, 11), (0, 11)])
def test_the_younger_a_culprit_the_sooner_it_is_found(place: int, most: int) -> None:
    old, tries = [f"q{i}" for i in range(100)], []

    def attempt(stopped: Any) -> Any:
        tries.append(set(stopped))
        if old[place] not in stopped:
            raise TaskFailed("fails")
        return set(stopped)

    assert find_culprits.run_without_culprits(attempt, old, [], TaskFailed("fails"), _nothing_of) == {old[place]}
    assert len(tries) <= most


def _put_aside(streams_by_query: dict[str, str], guilty: set[str]) -> tuple[dict[str, str], int]:
    """Who is stopped why, and after how many tries."""
    tries: list[set[str]] = []

    def attempt(stopped: Any) -> Any:
        tries.append(set(stopped))
        if guilty - set(stopped):
            raise TaskFailed("fails")
        return stopped

    def streams_of(query: str) -> frozenset[str]:
        return frozenset(streams_by_query[query])

    found = find_culprits.run_without_culprits(attempt, [*streams_by_query], [], TaskFailed("fails"), streams_of)
    assert tries[-1] == set(found), "what planning remembers is not of the batch that is committed"
    return dict(found), len(tries)


def test_all_readers_of_a_stream_are_put_aside_together_and_nobody_else() -> None:
    joins = ("ab", "bc", "ac", "cd", "bd")
    streams = {f"q{i}": joins[i % 5] for i in range(300)}
    guilty = {query for query, read in streams.items() if "a" in read}
    found, tries = _put_aside(streams, guilty)
    assert found.keys() == guilty
    assert tries <= 61
    assert sum("failed with this query and not" in reason for reason in found.values()) >= 3
    assert sum("queries, this one among them, and not without: fails" in reason for reason in found.values()) >= 110


def test_of_a_stream_few_are_put_aside_but_those_with_whom_the_batch_fails() -> None:
    streams = {f"q{i}": ("ab", "ac", "bc")[i % 3] for i in range(200)}
    guilty = {query for query, read in streams.items() if read == "ab"}
    found, tries = _put_aside(streams, guilty)
    assert guilty <= found.keys()
    assert len(found.keys() - guilty) <= 2
    assert tries <= 61


@pytest.mark.parametrize("guilty_from", [0, 100, 180])
def test_culprits_that_share_nothing_cost_as_few_others_as_tries_allow(guilty_from: int) -> None:
    streams = {f"q{i}": "ab" for i in range(200)}
    guilty = {query for i, query in enumerate(streams) if i >= guilty_from}
    found, tries = _put_aside(streams, guilty)
    assert found.keys() == guilty
    assert tries <= 61


def test_scattered_culprits_leave_somebody_running() -> None:
    streams = {f"q{i}": "ab" for i in range(200)}
    guilty = {query for i, query in enumerate(streams) if i % 20 == 19}
    found, tries = _put_aside(streams, guilty)
    assert guilty <= found.keys()
    assert len(found) < 150
    assert tries <= 61


def test_a_failure_without_any_query_is_no_groups_fault() -> None:
    def attempt(_stopped: Any) -> Any:
        raise TaskFailed("whatever runs")

    queries = [f"q{i}" for i in range(100)]
    with pytest.raises(TaskFailed, match="whatever runs"):
        find_culprits.run_without_culprits(attempt, queries, [], TaskFailed("fails"), _nothing_of)


def test_a_batch_that_fails_with_all_readers_of_a_stream_goes_on_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = _breaking(
        run_local.run_source, KeyError("row"), lambda task, *_: any(store.stream == "c" for store in task.plan.stores)
    )
    monkeypatch.setattr(run_local, "run_source", broken)
    monkeypatch.setattr(find_culprits, "TRIES_FOR_SINGLE_ONES", 6)
    with LocalSession(tmp_path) as session:
        for name in ("a", "b", "c"):
            session.create_stream(name, SCHEMA, "ts")
        sql = "SELECT x.v FROM {} x JOIN {} y ON x.v = y.v WITHIN {} SECONDS"
        for place in range(1, 9):
            session.create_query(sql.format("a", "b", place), f"ab{place}")
            session.create_query(sql.format("b", "c", place), f"bc{place}")
        session.push(BATCHES[0])
        stopped = {record.name for record in session.engine.queries.records() if is_stopped(record)}
        assert stopped == {f"bc{place}" for place in range(1, 9)}
        assert session.results("ab1").num_rows
