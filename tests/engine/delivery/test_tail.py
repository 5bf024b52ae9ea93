"""Answers as they are committed, for whoever iterates over them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from dovetail.core.errors import QueryError, SessionError
from dovetail.engine.delivery.tail import Tail
from dovetail.testing.local_session import LocalSession

if TYPE_CHECKING:
    from conftest import Bench

PATIENCE_S = 60.0
JOIN = "SELECT a.v AS x, b.v AS y FROM a JOIN b ON a.k = b.k WITHIN 100 SECONDS"


def never() -> bool:
    return False


def tail_of(
    session: LocalSession, query_id: str, has_ended: Callable[[], bool] = never, from_batch: int | None = None
) -> Tail:
    return Tail(session.engine, query_id, has_ended, from_batch=from_batch)


def push(bench: Bench, session: LocalSession, key: int, count: int = 1) -> None:
    """A batch in which `JOIN` finds `count` pairs of this key."""
    bench.push(session, a=[(key, key, 0.0)], b=[(key, number, 0.0) for number in range(count)])


def test_batches_come_whole_in_order_and_from_where_they_are_asked(bench: Bench) -> None:
    session = bench.open()
    query = session.create_query(JOIN, "q")
    push(bench, session, 1, 2)
    from_next, from_first, from_second = (tail_of(session, query.id, from_batch=first) for first in (None, 0, 1))
    bench.push(session)
    push(bench, session, 3)
    session.drop_query("q")
    push(bench, session, 4)
    assert [batch.batch for batch in from_first.batches()] == [0, 2]
    assert list(from_next) == [{"x": 3, "y": 0}] == list(from_second)
    assert from_next.end_reason == from_first.end_reason == "dropped"
    again = tail_of(session, query.id, from_batch=0)
    assert sorted((row["x"], row["y"]) for row in again) == [(1, 0), (1, 1), (3, 0)]


def test_it_waits_for_what_comes_and_a_slow_reader_misses_nothing(bench: Bench) -> None:
    session = bench.open()
    query = session.create_query(JOIN, "q")
    tail = tail_of(session, query.id)
    found: list[int] = []
    reading = threading.Thread(target=lambda: found.extend(row["x"] for row in tail), daemon=True)
    reading.start()
    for key in range(5):
        push(bench, session, key)
    session.create_query(JOIN + " -- other", "q", replace=True)
    push(bench, session, 9)
    reading.join(PATIENCE_S)
    assert not reading.is_alive()
    assert found == [0, 1, 2, 3, 4]
    assert tail.end_reason == "replaced"


def test_it_ends_with_the_session_after_the_last_answers(bench: Bench) -> None:
    session = bench.open()
    query = session.create_query(JOIN, "q")
    tail = tail_of(session, query.id, lambda: session.engine.head.batch >= 1)
    push(bench, session, 1)
    push(bench, session, 2)
    assert [row["x"] for row in tail] == [1, 2]
    assert tail.end_reason == "stopped"


def test_it_raises_what_stopped_the_session_after_the_last_answers(bench: Bench) -> None:
    def has_ended() -> bool:
        raise SessionError("the disk is full")

    session = bench.open()
    query = session.create_query(JOIN, "q")
    tail, found = tail_of(session, query.id, has_ended), list[int]()
    push(bench, session, 1)
    with pytest.raises(SessionError, match="disk is full"):
        found.extend(row["x"] for row in tail)
    assert found == [1]


def test_it_raises_what_stopped_the_query_alone(bench: Bench) -> None:
    session = bench.open()
    query = session.create_query("SELECT a.v AS x, 1 / (b.v - 1) AS y FROM a JOIN b ON a.k = b.k WITHIN 9 SECONDS", "q")
    tail, found = tail_of(session, query.id), list[int]()
    push(bench, session, 1)
    push(bench, session, 2, 2)
    push(bench, session, 3)
    with pytest.raises(QueryError, match="query 'q' is stopped since batch 1: "):
        found.extend(row["x"] for row in tail)
    assert found == [1]


def test_answers_that_are_taken_back_say_so(bench: Bench) -> None:
    session = bench.open()
    query = session.create_query("SELECT k, COUNT(*) AS n FROM a GROUP BY k", "q")
    tail = tail_of(session, query.id)
    for _ in range(2):
        push(bench, session, 1)
    session.drop_query("q")
    push(bench, session, 1)
    assert sorted((row["n"], row["_change"]) for row in tail) == [(1, -1), (1, 1), (2, 1)]
