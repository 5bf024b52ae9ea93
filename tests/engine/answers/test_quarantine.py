"""A query that fails on some row stops alone: the others go on, its earlier answers stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict

import pytest

from dovetail.engine.control.registry import QueryState
from dovetail.testing.local_session import LocalSession

if TYPE_CHECKING:
    from conftest import Bench

RowsOf = Callable[[LocalSession, str], list[tuple[Any, ...]]]

GOOD = "SELECT a.k, a.v, b.v FROM a JOIN b ON a.k = b.k"
# Each fails where v of b is 0, at another place of the pipeline.
BAD = {
    "selection": f"{GOOD} WHERE 10 / b.v > 0",
    "selection of both": f"{GOOD} WHERE 10 / a.v > 0 AND 10 / b.v > 0",
    "output": "SELECT a.k, a.v, 10 div b.v FROM a JOIN b ON a.k = b.k",
    "stored key": "SELECT a.k, a.v, b.v FROM a JOIN b ON a.k = b.k + 0 * (10 div b.v)",
    "second key": f"{GOOD} AND a.k * 1 = b.k + 10 % b.v - 10 % b.v",
    "residual": f"{GOOD} AND a.v < 10 / b.v + 1000",
    "cast": "SELECT a.k, a.v, CAST(CASE WHEN b.v = 0 THEN 'zero' ELSE '1' END AS INT) AS n FROM a JOIN b ON a.k = b.k",
    "key of the second hop": "SELECT a.k, b.v, c.v FROM a JOIN b ON a.k = b.k JOIN a c ON c.k = b.k + 0 * (10 div b.v)",
}


class Batch(TypedDict):
    a: list[tuple[int, int, int]]
    b: list[tuple[int, int, int]]


FINE = Batch(a=[(1, 1, 0), (2, 2, 0)], b=[(1, 5, 0), (2, 5, 0)])
WITH_ZERO = Batch(a=[(1, 3, 1), (3, 3, 1)], b=[(1, 7, 1), (3, 0, 1)])
MORE = Batch(a=[(1, 4, 2)], b=[(3, 9, 2)])


@pytest.mark.parametrize("place", BAD)
@pytest.mark.parametrize("splits", [1, 2])
def test_it_stops_alone_with_its_error_and_keeps_its_answers(
    bench: Bench, rows_of: RowsOf, place: str, splits: int
) -> None:
    session = bench.open()
    bad = session.create_query(BAD[place], "bad")
    good = session.create_query(GOOD, "good")
    bench.push(session, splits=splits, **FINE)
    assert bad.status.error is None
    earlier = rows_of(session, "bad")
    assert len(earlier) == 2
    bench.push(session, splits=splits, **WITH_ZERO)
    assert bad.status.state is QueryState.QUARANTINED
    assert bad.status.error is not None
    assert "at: " in bad.status.error
    assert ("division by zero" in bad.status.error) != (place == "cast")
    bench.push(session, splits=splits, **MORE)
    assert rows_of(session, "bad") == earlier
    assert bad.status.total_rows == len(earlier)
    assert good.status.state is QueryState.RUNNING
    assert rows_of(session, "good") == [
        (1, 1, 5), (1, 1, 7), (1, 3, 5), (1, 3, 7), (1, 4, 5), (1, 4, 7), (2, 2, 5), (3, 3, 0), (3, 3, 9),
    ]  # fmt: skip


def test_a_row_that_no_result_needs_fails_no_output_and_no_residual(bench: Bench, rows_of: RowsOf) -> None:
    session = bench.open()
    for name in ("output", "residual"):
        session.create_query(BAD[name], name)
    bench.push(session, a=[(1, 1, 0)], b=[(1, 5, 0), (9, 0, 0)])
    for name in ("output", "residual"):
        assert len(rows_of(session, name)) == 1


def test_queries_that_share_the_failing_part_all_stop(bench: Bench) -> None:
    session = bench.open()
    handles = [session.create_query(BAD["selection"] + more, name) for name, more in (("x", ""), ("y", " AND a.v > 0"))]
    bench.push(session, **FINE)
    bench.push(session, **WITH_ZERO)
    assert [handle.status.state for handle in handles] == [QueryState.QUARANTINED] * 2


def test_a_new_query_that_fails_on_older_rows_stops_alone(bench: Bench, rows_of: RowsOf) -> None:
    session = bench.open()
    session.create_query(GOOD, "good")
    bench.push(session, **WITH_ZERO)
    bad = session.create_query(f"{GOOD} WHERE 10 / b.v > 0", "bad")
    bench.push(session, **MORE)
    assert bad.status.state is QueryState.QUARANTINED
    assert len(rows_of(session, "good")) == 4
    assert rows_of(session, "bad") == []


def test_quarantine_survives_a_restart_and_a_drop_frees_the_name(bench: Bench) -> None:
    session = bench.open()
    session.create_query(BAD["output"], "bad")
    bench.push(session, **WITH_ZERO)
    session.close()
    again = bench.open()
    (record,) = again.engine.queries.records()
    assert record.state is QueryState.QUARANTINED
    assert record.error
    again.drop_query("bad")
    handle = again.create_query(GOOD, "bad")
    bench.push(again, **FINE)
    assert handle.status.state is QueryState.RUNNING


def test_a_query_that_asks_a_failed_selection_again_fails_again_on_the_same_rows(bench: Bench) -> None:
    # Not undecided taken for refused: then it would silently miss rows of the batch that failed.
    session = bench.open()
    session.create_query(GOOD, "keeps_all")
    session.create_query(BAD["selection"], "bad")
    bench.push(session, **WITH_ZERO)
    session.drop_query("bad")
    again = session.create_query(BAD["selection"], "again")
    bench.push(session, a=[(1, 4, 2)])
    assert again.status.state is QueryState.QUARANTINED


def test_rows_that_a_failed_selection_lost_are_not_called_complete(bench: Bench, rows_of: RowsOf) -> None:
    session = bench.open()
    session.create_query(f"{GOOD} WHERE b.v > 6", "keeps_some")
    session.create_query(BAD["selection"], "bad")
    bench.push(session, **FINE)
    bench.push(session, **WITH_ZERO)
    session.drop_query("bad")
    again = session.create_query(BAD["selection"], "again")
    bench.push(session, a=[(1, 4, 2)])
    assert again.status.complete_from == 2
    assert rows_of(session, "again") == []
    bench.push(session, b=[(1, 5, 3)])
    assert rows_of(session, "again") == [(1, 4, 5)]


def test_the_stores_of_a_stopped_query_are_freed(bench: Bench) -> None:
    session = bench.open()
    session.create_query(BAD["output"], "bad")
    bench.push(session, **WITH_ZERO)
    assert bench.files()
    bench.push(session, **MORE)
    bench.push(session)  # the two newest states are kept, with what they need
    assert bench.files() == set()
