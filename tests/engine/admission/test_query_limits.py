"""A query that explodes is stopped early and alone; what it shares with others goes on for them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from dovetail.engine.admission.query_limits import batch_limits, limits_of, passed_limits
from dovetail.engine.control.query_options import QueryOptions
from dovetail.engine.control.registry import QueryRecord, QueryState
from dovetail.engine.options.limits import Limits
from dovetail.optimizer.intermediates.kept import KeptIntermediate, Use, maintained_by
from dovetail.plan.fill import filled_by
from dovetail.plan.intermediate import Intermediate
from dovetail.plan.query_limits import BatchLimits, Found, QueryLimits
from dovetail.testing.local_session import LocalSession

if TYPE_CHECKING:
    from conftest import Bench

RowsOf = Callable[[LocalSession, str], list[tuple[Any, ...]]]

ALL = "SELECT a.v, b.v FROM a JOIN b ON a.k = b.k"
FEW = f"{ALL} WHERE a.v < 3 AND b.v < 2"
FEW_ROWS = [(x, y) for x in range(3) for y in range(2)]
SQUARE = 1_000


def same_key(count: int, *, since: int = 0) -> list[tuple[int, int, int]]:
    return [(7, since + row, 0) for row in range(count)]


def count_in(error: str | None) -> int:
    found = re.search(r": ([0-9,]+) when it was stopped", error or "")
    assert found
    return int(found[1].replace(",", ""))


def test_it_stops_early_and_alone_though_it_shares_every_step(bench: Bench, rows_of: RowsOf) -> None:
    session = bench.open(max_pairs=5_000)
    bad = session.create_query(ALL, "bad", max_results_per_batch=10_000)
    session.create_query(FEW, "few")
    session.create_query(ALL, "all")
    bench.push(session, a=[(1, 1, 0)], b=[(1, 5, 0)])
    bench.push(session, a=same_key(SQUARE), b=same_key(SQUARE))
    assert bad.status.state is QueryState.QUARANTINED
    assert bad.status.failed_batch == 1
    assert "found more than 10,000 results in batch 1" in (bad.status.error or "")
    assert "instead: " in (bad.status.error or "")
    assert count_in(bad.status.error) < 100_000
    assert rows_of(session, "bad") == [(1, 5)]
    assert rows_of(session, "few") == FEW_ROWS
    assert len(rows_of(session, "all")) == SQUARE**2 + 1


def test_a_billion_pairs_are_not_looked_at(bench: Bench, rows_of: RowsOf) -> None:
    session = bench.open(max_pairs=100_000)
    bad = session.create_query(ALL, "bad", max_results_per_batch=100_000)
    session.create_query(FEW, "few")
    bench.push(session, a=same_key(40_000), b=same_key(40_000))
    assert bad.status.state is QueryState.QUARANTINED
    assert count_in(bad.status.error) < 1_000_000
    assert rows_of(session, "few") == FEW_ROWS


def test_what_explodes_in_the_middle_of_a_join_counts_too(bench: Bench, rows_of: RowsOf) -> None:
    session = bench.open(max_pairs=5_000, max_pairs_per_batch=10_000)
    middle = session.create_query(f"{ALL} JOIN a c ON c.k = b.v AND c.v = -1", "middle")
    short = session.create_query(FEW, "short")
    bench.push(session, a=[(1, 9, 0)], b=[(8, 0, 0)])
    bench.push(session, a=same_key(SQUARE), b=same_key(SQUARE))
    assert "found more than 10,000 pairs of rows in batch 1" in (middle.status.error or "")
    assert count_in(middle.status.error) < 100_000
    assert short.status.state is QueryState.RUNNING
    assert rows_of(session, "short") == FEW_ROWS


def test_tasks_that_each_stay_below_the_limit_pass_it_together(bench: Bench) -> None:
    session = bench.open(partitions=4, key_groups=8)
    rows = [(key, key, 0) for key in range(100)]
    exact = session.create_query(ALL, "exact", max_results_per_batch=100)
    over = session.create_query(ALL, "over", max_results_per_batch=99)
    bench.push(session, a=rows, b=rows)
    assert exact.status.state is QueryState.RUNNING
    assert exact.status.total_rows == 100
    assert over.status.state is QueryState.QUARANTINED
    assert count_in(over.status.error) == 100
    assert [entry["numOutputRows"] for entry in (session.progress or {})["queries"]] == [100, 0]


def test_the_files_of_a_stopped_query_are_gone(bench: Bench) -> None:
    session = bench.open(partitions=1)
    session.create_query(ALL, "bad", max_results_per_batch=3)
    bench.push(session, a=same_key(2), b=same_key(2))
    assert bench.files("answers") == bench.files("results") == set()


def test_the_session_limits_who_does_not_choose(bench: Bench) -> None:
    session = bench.open(max_results_per_batch=3, max_pairs_per_batch=3)
    usual = session.create_query(ALL, "usual")
    more = session.create_query(ALL, "more", max_results_per_batch=4)
    bench.push(session, a=same_key(2), b=same_key(2))
    assert [usual.status.state, more.status.state] == [QueryState.QUARANTINED, QueryState.RUNNING]


def test_a_stopped_query_begins_anew_when_it_is_replaced_by_itself(bench: Bench, rows_of: RowsOf) -> None:
    session = bench.open()
    bad = session.create_query(ALL, "bad", max_results_per_batch=3)
    bench.push(session, a=same_key(2), b=same_key(2))
    assert bad.status.state is QueryState.QUARANTINED
    assert session.create_query(ALL, "bad", max_results_per_batch=3).id == bad.id
    anew = session.create_query(ALL, "bad", replace=True, max_results_per_batch=3)
    assert anew.id != bad.id
    assert session.create_query(ALL, "bad", replace=True, max_results_per_batch=3).id == anew.id
    bench.push(session, a=[(1, 1, 1)], b=[(1, 2, 1)])
    assert bad.status.state is QueryState.DROPPED
    assert (bad.status.failed_batch, bool(bad.status.error)) == (0, True)
    assert anew.status.state is QueryState.RUNNING
    assert rows_of(session, "bad") == [(1, 2)]


def test_failed_batch_and_error_survive_a_restart(bench: Bench) -> None:
    session = bench.open()
    bad = session.create_query(ALL, "bad", max_results_per_batch=3)
    bench.push(session, a=same_key(2), b=same_key(2))
    error = bad.status.error
    session.close()
    (record,) = bench.open().engine.queries.records()
    assert (record.state, record.failed_batch, record.error) == (QueryState.QUARANTINED, 0, error)


def test_planners_do_not_learn_from_steps_that_were_cut_short(bench: Bench) -> None:
    session = bench.open(max_pairs=100)
    session.create_query(ALL, "bad", max_results_per_batch=1)
    bench.push(session, a=same_key(100), b=same_key(100))
    assert session.engine.head.statistics.match("a.k=b.k").origin.value == "assumed"


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({}, (100, 50)),
        ({"max_results_per_batch": 10}, (10, 50)),
        ({"max_results_per_batch": 70}, (70, 70)),
        ({"max_results_per_batch": 70, "max_pairs_per_batch": 60}, (70, 60)),
    ],
)
def test_who_may_find_many_results_may_meet_as_many_pairs(chosen: dict[str, int], expected: tuple[int, int]) -> None:
    options = replace(Limits.none(), max_results_per_batch=100, max_pairs_per_batch=50)
    assert limits_of(QueryOptions(**chosen), options) == QueryLimits(*expected)


def test_a_kept_join_may_meet_as_many_pairs_as_its_users_together() -> None:
    records = [QueryRecord("q#1", "q", ""), QueryRecord("p#2", "p", "", options=QueryOptions(max_pairs_per_batch=7))]
    join = Intermediate(("a", "b"), (("0.k", "1.k"),), (), ("ts", "ts"))
    kept = KeptIntermediate(join, 0, tuple(Use(record.id, ("a", "b"), ("c",)) for record in records))
    limits = batch_limits(records, [kept], replace(Limits.none(), max_pairs_per_batch=50))
    for query in (maintained_by(join), filled_by(join.id)):
        assert limits.of(query) == QueryLimits(None, 57)
    unlimited = batch_limits(records, [kept], Limits.none())
    assert unlimited.of(maintained_by(join)) == QueryLimits(None, None)


def test_no_limit_is_never_passed() -> None:
    found = {"q": Found(10**12, 10**12)}
    assert passed_limits(found, BatchLimits(), 0) == {}
    assert list(passed_limits(found, BatchLimits(QueryLimits(10**12, 10**12 - 1)), 0)) == ["q"]
