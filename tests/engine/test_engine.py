from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from dovetail.core.errors import BucketMissing, CheckpointLocked, QueryError, SessionError, StreamError, UnknownName
from dovetail.engine.control.registry import QueryState
from dovetail.engine.explain.explain import explain_query
from dovetail.testing.faults import Faults, SimulatedCrash
from dovetail.testing.local_session import LocalSession

if TYPE_CHECKING:
    from conftest import Bench

RowsOf = Callable[[LocalSession, str], list[tuple[Any, ...]]]

JOIN = "SELECT a.k, a.v, b.v FROM a JOIN b ON a.k = b.k"
KEYS_ONLY = "SELECT a.k FROM a JOIN b ON a.k = b.k"
SELF = "SELECT x.v FROM a x JOIN a y ON x.k = y.k"


# Creating


def test_a_query_is_pending_until_its_first_batch(bench: Bench) -> None:
    session = bench.open()
    handle = session.create_query(JOIN, "q")
    assert (handle.status.state, handle.status.created_batch) == (QueryState.PENDING, None)
    bench.push(session, a=[(1, 1, 0)])
    assert (handle.status.state, handle.status.created_batch) == (QueryState.RUNNING, 0)


def test_creating_the_same_query_again_is_no_new_query(bench: Bench, rows_of: RowsOf) -> None:
    session = bench.open()
    first = session.create_query(JOIN, "q")
    assert session.create_query(JOIN, "q").id == first.id
    bench.push(session, a=[(1, 1, 0)], b=[(1, 2, 0)])
    assert session.create_query(JOIN, "q").id == first.id
    session.close()
    again = bench.open()
    assert again.create_query(JOIN, "q").id == first.id
    bench.push(again, a=[(1, 3, 1)])
    assert rows_of(again, "q") == [(1, 1, 2), (1, 3, 2)]
    assert len(again.engine.queries.records()) == 1


def test_another_text_under_a_taken_name_is_refused(bench: Bench) -> None:
    session = bench.open()
    session.create_query(JOIN, "q")
    with pytest.raises(QueryError, match="'q' exists already with another text") as caught:
        session.create_query(KEYS_ONLY, "q")
    assert caught.value.hint
    bench.push(session, a=[(1, 1, 0)])
    with pytest.raises(QueryError, match="exists already"):
        session.create_query(KEYS_ONLY, "q")


@pytest.mark.parametrize("sql", ["SELECT nope FROM a JOIN b ON a.k = b.k", "SELECT a.k FROM a JOIN z ON a.k = z.k"])
def test_a_query_that_is_refused_leaves_nothing_behind(bench: Bench, sql: str) -> None:
    session = bench.open()
    with pytest.raises(UnknownName):
        session.create_query(sql, "q")
    assert session.engine.queries.records() == ()
    assert bench.files("changelog") == set()
    session.create_query(JOIN, "q")


def test_a_bad_name_is_refused(bench: Bench) -> None:
    with pytest.raises(QueryError, match="cannot name a query"):
        bench.open().create_query(JOIN, "a/b")


def test_a_created_query_outlives_a_crash_before_its_first_batch(bench: Bench, rows_of: RowsOf) -> None:
    session = bench.open(faults=Faults(crash_at="before_manifest"))
    session.create_query(JOIN, "q")
    with pytest.raises(SimulatedCrash):
        bench.push(session, a=[(1, 1, 0)], b=[(1, 2, 0)])
    session.close()
    again = bench.open()
    bench.push(again, a=[(1, 1, 0)], b=[(1, 2, 0)])
    assert rows_of(again, "q") == [(1, 1, 2)]


def test_an_unknown_query_is_refused(bench: Bench) -> None:
    with pytest.raises(QueryError, match="no query 'q#9'"):
        bench.open().engine.queries.drop("q#9")


# Growth


def test_a_budget_refuses_a_query_that_grows_for_ever(bench: Bench) -> None:
    session = bench.open(storage_budget=1 << 20)
    with pytest.raises(QueryError, match="'q' would keep a, b for ever") as caught:
        session.create_query(JOIN, "q")
    assert caught.value.hint
    assert "WITHIN" in caught.value.hint
    assert session.engine.queries.records() == ()
    session.create_query(f"{JOIN} WITHIN 5 SECONDS", "q")


def test_without_a_budget_growth_is_said_aloud(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    session = bench.open()
    with caplog.at_level(logging.WARNING, logger="dovetail"):
        session.create_query(f"{JOIN} WITHIN 5 SECONDS", "bounded")
        assert not caplog.messages
        session.create_query(JOIN, "grows")
    assert caplog.messages == ["query grows keeps a, b for ever: its state grows without bound"]


def test_groups_without_a_window_are_told_to_grow(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    windowed, running = (f"SELECT COUNT(*) AS n FROM a GROUP BY {key}" for key in ("k, window(ts, '1 second')", "k"))
    session = bench.open()
    with caplog.at_level(logging.WARNING, logger="dovetail"):
        session.create_query(windowed, "bounded")
        session.create_query("SELECT SUM(v) AS n FROM a", "one_group")
        assert not caplog.messages
        session.create_query(running, "grows")
    assert caplog.messages == ["query grows keeps groups by a.k for ever: its state grows without bound"]
    bench.push(session, a=[(1, 1, 0)])
    assert "kept for ever, so this grows without bound" in explain_query(session.engine, "grows#3")
    session.close()
    session = bench.open(storage_budget=1 << 20)
    with pytest.raises(QueryError, match=r"'more' would keep groups by a\.k for ever") as caught:
        session.create_query(running, "more")
    assert "window(" in str(caught.value.hint)


# Dropping


def test_a_drop_stops_results_and_frees_the_stores_that_nobody_else_uses(bench: Bench, rows_of: RowsOf) -> None:
    session = bench.open()
    session.create_query(JOIN, "goes")
    session.create_query(SELF, "stays")
    bench.push(session, a=[(1, 1, 0)], b=[(1, 2, 0)])
    assert {meta.store for meta in session.engine.head.state.buckets} == {"a", "b"}
    session.drop_query("goes")
    bench.push(session, a=[(1, 3, 1)], b=[(1, 4, 1)])
    bench.push(session)  # the two newest states are kept, with what they need
    assert {meta.store for meta in session.engine.head.state.buckets} == {"a"}
    assert rows_of(session, "goes") == [(1, 1, 2)]
    assert rows_of(session, "stays") == [(1,), (1,), (3,), (3,)]
    session.drop_query("stays")
    bench.push(session, a=[(1, 5, 2)])
    bench.push(session)
    assert bench.files() == set()


def test_a_dropped_name_is_free_and_the_new_query_has_its_own_answers(bench: Bench, rows_of: RowsOf) -> None:
    session = bench.open()
    first = session.create_query(JOIN, "q")
    bench.push(session, a=[(1, 1, 0)], b=[(1, 2, 0)])
    session.drop_query("q")
    second = session.create_query(KEYS_ONLY, "q")
    assert second.id != first.id
    bench.push(session, a=[(1, 3, 1)])
    assert first.status.state is QueryState.DROPPED
    assert first.status.dropped_batch == 1
    assert rows_of(session, "q") == [(1,)]
    assert sum(file.rows for file in session.engine.answers.results(first.id)) == 1


def test_a_query_dropped_before_its_first_batch_never_runs(bench: Bench) -> None:
    session = bench.open()
    handle = session.create_query(JOIN, "q")
    session.drop_query("q")
    assert handle.status.state is QueryState.DROPPED
    session.drop_query("q")
    bench.push(session, a=[(1, 1, 0)], b=[(1, 2, 0)])
    assert handle.status.total_rows == 0
    assert bench.files() == set()


def test_dropping_twice_is_dropping_once(bench: Bench) -> None:
    session = bench.open()
    handle = session.create_query(JOIN, "q")
    bench.push(session, a=[(1, 1, 0)])
    for _ in range(2):
        session.drop_query("q")
    bench.push(session)
    session.drop_query("q")
    bench.push(session)
    assert handle.status.dropped_batch == 1


# Since when answers are complete


@pytest.mark.parametrize(
    ("base", "sql", "expected"),
    [
        (KEYS_ONLY, "SELECT b.k FROM b JOIN a ON b.k = a.k", 0),
        (KEYS_ONLY, f"{KEYS_ONLY} WITHIN 5 SECONDS", 0),
        (KEYS_ONLY, f"{KEYS_ONLY} WHERE b.k > 0", 0),
        (KEYS_ONLY, JOIN, 2),
        (KEYS_ONLY, f"{KEYS_ONLY} WHERE b.v > 0", 2),
        (JOIN, f"{KEYS_ONLY} WHERE b.v > 0", 0),
        (f"{JOIN} WHERE b.v > 1", f"{KEYS_ONLY} WHERE b.v > 1", 0),
        (f"{JOIN} WHERE b.v > 1", f"{KEYS_ONLY} WHERE b.v > 0", 2),
        (f"{JOIN} WHERE b.v > 1", KEYS_ONLY, 2),
        (JOIN, SELF, 0),
        (SELF, JOIN, 2),
    ],
)
def test_a_late_query_is_complete_as_far_back_as_the_stores_have_it(
    bench: Bench, rows_of: RowsOf, base: str, sql: str, expected: int
) -> None:
    session = bench.open()
    session.create_query(base, "base")
    for batch in range(2):
        bench.push(session, a=[(1, 5, batch)], b=[(1, 5, batch)])
    late = session.create_query(sql, "late")
    bench.push(session, a=[(1, 5, 2)], b=[(1, 5, 2)])
    assert late.status.created_batch == 2
    assert late.status.complete_from == expected
    # Pairs over the usable batches, without those whose members are both older than the query.
    usable = 3 - expected
    assert len(rows_of(session, "late")) == usable**2 - (usable - 1) ** 2


def test_what_expired_for_others_is_not_complete_for_a_wider_window(bench: Bench) -> None:
    session = bench.open(merge_fanout=100)
    session.create_query(f"{KEYS_ONLY} WITHIN 2 SECONDS", "narrow")
    for batch in range(8):
        bench.push(session, a=[(1, 5, batch)], b=[(1, 5, batch)])
    wide = session.create_query(f"{KEYS_ONLY} WITHIN 4 SECONDS", "wide")
    same = session.create_query("SELECT b.k FROM a JOIN b ON a.k = b.k WITHIN 2 SECONDS", "same")
    bench.push(session, a=[(1, 5, 8)], b=[(1, 5, 8)])
    # At second 7 rows up to second 4 are gone; a window of two seconds no longer asks for them.
    assert (wide.status.complete_from, same.status.complete_from) == (5, 0)


# Streams and checkpoints


def test_a_second_session_on_the_checkpoint_is_refused(bench: Bench) -> None:
    session = bench.open()
    with pytest.raises(CheckpointLocked):
        bench.open()
    session.close()
    bench.open()


def test_a_stream_cannot_be_created_twice(bench: Bench) -> None:
    session = bench.open()
    with pytest.raises(StreamError, match="'a' exists already"):
        session.create_stream("a", pa.schema([("k", pa.int32())]))


def test_a_checkpoint_wants_the_streams_it_was_made_with(bench: Bench) -> None:
    session = bench.open()
    session.create_query(SELF, "q")
    bench.push(session, a=[(1, 1, 0)])
    session.close()
    other = LocalSession(bench.root)
    with pytest.raises(StreamError, match="'a' differs from the one this checkpoint was made with") as caught:
        other.create_stream("a", pa.schema([("k", pa.int64())]))
    assert caught.value.where
    assert "then a(k int, v int, ts timestamp) event_time=ts" in caught.value.where
    other.create_stream("c", pa.schema([("k", pa.int32())]))
    with pytest.raises(SessionError, match="missing: a, b; new: c"):
        other.engine.check_ready()
    other.close()


def test_a_session_without_streams_is_not_ready(bench: Bench) -> None:
    session = LocalSession(bench.root)
    with pytest.raises(SessionError, match="no stream is registered"):
        session.engine.check_ready()
    session.close()


def test_a_missing_bucket_is_refused_and_lets_go_of_the_lock(bench: Bench, rows_of: RowsOf) -> None:
    session = bench.open()
    session.create_query(JOIN, "q")
    bench.push(session, a=[(1, 1, 0)], b=[(1, 2, 0)])
    session.close()
    path = bench.root / min(bench.files())
    content = path.read_bytes()
    path.unlink()
    for _ in range(2):
        with pytest.raises(BucketMissing, match=path.name):
            bench.open()
    path.write_bytes(content)
    again = bench.open()
    bench.push(again, a=[(1, 3, 1)])
    assert rows_of(again, "q") == [(1, 1, 2), (1, 3, 2)]


# Batches


def test_a_plan_holds_until_queries_change(bench: Bench) -> None:
    session = bench.open()
    epochs = []
    for batch in range(5):
        if batch == 1:
            session.create_query(JOIN, "q")
        if batch == 3:
            session.create_query(SELF, "r")
        bench.push(session, a=[(1, 1, batch)])
        epochs.append(session.engine.plans.planned().plan.epoch)
    assert epochs == [1, 2, 2, 3, 3]


def test_rows_that_come_too_late_are_counted_and_not_joined(bench: Bench, rows_of: RowsOf) -> None:
    session = bench.open(lateness="2 seconds")
    session.create_query(KEYS_ONLY, "q")
    bench.push(session, a=[(1, 1, 10)])
    bench.push(session, b=[(1, 1, 0)], a=[(1, 2, 8), (1, 3, 7.9)])
    assert session.progress is not None
    late = {entry["name"]: entry["lateRows"] for entry in session.progress["streams"]}
    assert late == {"a": 1, "b": 0}
    assert rows_of(session, "q") == [(1,), (1,)]


def test_progress_names_a_self_join_once_per_step(bench: Bench) -> None:
    session = bench.open()
    session.create_query("SELECT x.v FROM a x JOIN a y ON x.k = y.k JOIN a z ON y.k = z.k", "q")
    bench.push(session, a=[(1, 1, 0)])
    assert session.progress is not None
    assert [hop["queries"] for hop in session.progress["hops"]] == [["q"]] * len(session.progress["hops"])
