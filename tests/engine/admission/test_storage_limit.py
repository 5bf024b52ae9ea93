"""A query whose stores outgrow their limit is stopped; what others want anyway is not its fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dovetail.engine.control.registry import QueryState
from dovetail.testing.local_session import LocalSession

if TYPE_CHECKING:
    from conftest import Bench

RowsOf = Callable[[LocalSession, str], list[tuple[Any, ...]]]
FOR_EVER = "SELECT a.v, b.v FROM a JOIN b ON a.k = b.k"
SHORT = f"{FOR_EVER} WITHIN 1 SECOND"
NARROW = f"{FOR_EVER} WHERE a.v < 2 AND b.v < 2"
ROWS = 200
LIMIT = 60_000
"""Above what a few batches take, below what twenty do."""


def push_until(bench: Bench, session: LocalSession, batches: int, *, first: int = 0) -> None:
    for batch in range(first, batches):
        rows = [(batch * ROWS + row, row, batch + row / ROWS) for row in range(ROWS)]
        bench.push(session, a=rows, b=rows)


def stored_bytes(session: LocalSession) -> int:
    return sum(meta.size_bytes for meta in session.engine.head.state.buckets)


def test_it_is_stopped_with_its_answers_and_its_stores_go(bench: Bench, rows_of: RowsOf) -> None:
    session = bench.open(max_query_bytes=LIMIT)
    growing = session.create_query(FOR_EVER, "growing")
    short = session.create_query(SHORT, "short")
    push_until(bench, session, 20)
    assert growing.status.state is QueryState.QUARANTINED
    assert "limit 60 kB" in (growing.status.error or "")
    failed = growing.status.failed_batch
    assert failed is not None
    assert len(rows_of(session, "growing")) == (failed + 1) * ROWS
    assert short.status.state is QueryState.RUNNING
    assert len(rows_of(session, "short")) == 20 * ROWS
    assert stored_bytes(session) < LIMIT


def test_who_wants_little_of_a_large_store_is_not_charged_for_it(bench: Bench) -> None:
    session = bench.open(max_query_bytes=LIMIT)
    growing = session.create_query(FOR_EVER, "growing")
    narrow = session.create_query(NARROW, "narrow")
    push_until(bench, session, 20)
    assert growing.status.state is QueryState.QUARANTINED
    assert narrow.status.state is QueryState.RUNNING


def test_who_comes_later_is_charged_for_what_that_adds(bench: Bench) -> None:
    # All rows for a second next to a few for ever: whole buckets live and die together, so all stay.
    session = bench.open(max_query_bytes=LIMIT)
    narrow = session.create_query(NARROW, "narrow")
    short = session.create_query(SHORT, "short")
    push_until(bench, session, 20)
    assert narrow.status.state is QueryState.RUNNING
    assert short.status.state is QueryState.QUARANTINED


def test_who_comes_later_and_keeps_longer_is_charged_for_the_time(bench: Bench) -> None:
    session = bench.open(max_query_bytes=LIMIT)
    short = session.create_query(SHORT, "short")
    narrow = session.create_query(NARROW, "narrow")
    push_until(bench, session, 20)
    assert narrow.status.state is QueryState.QUARANTINED
    assert short.status.state is QueryState.RUNNING


def test_what_two_need_alike_is_the_fault_of_neither(bench: Bench) -> None:
    session = bench.open(max_query_bytes=LIMIT)
    both = [session.create_query(FOR_EVER, name) for name in ("one", "other")]
    push_until(bench, session, 20)
    assert stored_bytes(session) > LIMIT
    assert [query.status.state for query in both] == [QueryState.RUNNING] * 2
    session.drop_query("other")
    push_until(bench, session, 21, first=20)
    assert both[0].status.state is QueryState.QUARANTINED


def test_without_a_limit_nobody_is_stopped(bench: Bench) -> None:
    session = bench.open()
    growing = session.create_query(FOR_EVER, "growing")
    push_until(bench, session, 20)
    assert growing.status.state is QueryState.RUNNING


def test_a_join_that_is_kept_for_one_query_is_its_own(bench: Bench) -> None:
    session = bench.open(max_query_bytes=LIMIT, keep_intermediates="always")
    text = f"{FOR_EVER} JOIN b c ON c.k = b.k AND c.v = b.v"
    own = session.create_query(text, "own")
    push_until(bench, session, 20)
    assert own.status.state is QueryState.QUARANTINED
