from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dovetail.core.errors import QueryError
from dovetail.engine.backfill.record import BackfillStatus
from dovetail.engine.engine import Engine
from dovetail.engine.options import make_options
from dovetail.query.stream import Stream
from dovetail.query.types import INT, TIMESTAMP
from dovetail.testing.faults import CRASH_STEPS, Faults, SimulatedCrash
from dovetail.testing.local_history import LocalHistory
from dovetail.testing.local_session import LocalSession
from tests.support.faults.backfill_runs import HISTORY_STEPS

JOIN = "SELECT a.v AS av, b.v AS bv FROM a JOIN b ON a.k = b.k WITHIN 5 SECONDS"
FOR_EVER = "SELECT a.v AS av, b.v AS bv FROM a JOIN b ON a.k = b.k"
Rows = Callable[[LocalSession, str], list[tuple[Any, ...]]]


@pytest.fixture
def history() -> LocalHistory:
    return LocalHistory()


def push_numbered(bench: Any, session: LocalSession, *batches: int) -> None:
    """One row of each stream a batch, a second apart; the value tells the batch."""
    for batch in batches:
        bench.push(session, a=[(1, batch, batch)], b=[(1, batch, batch)])


def finish(bench: Any, session: LocalSession) -> None:
    """Everything old is beyond all bounds, and every history runs to its end."""
    bench.push(session, a=[(9, 0, 1000)], b=[(8, 0, 1000)])
    while session.backfills.step(2):
        pass
    bench.push(session)


def pairs(last: int) -> list[tuple[int, int]]:
    return sorted((a, b) for a in range(last + 1) for b in range(last + 1) if abs(a - b) <= 5)


def test_a_query_created_later_answers_what_was_before(bench: Any, rows_of: Rows, history: LocalHistory) -> None:
    session = bench.open(history=history)
    push_numbered(bench, session, 0, 1, 2, 3)
    handle = session.create_query(JOIN, "q", backfill=True)
    push_numbered(bench, session, 4, 5)
    assert handle.status.complete_from == handle.status.answered_from == 4
    assert rows_of(session, "q") == [(4, 4), (4, 5), (5, 4), (5, 5)]
    finish(bench, session)
    assert rows_of(session, "q") == pairs(5)
    assert (handle.status.answered_from, handle.status.total_rows) == (0, len(pairs(5)))
    assert session.backfill("q") == BackfillStatus("done", 7, 7, len(pairs(5)) - 4, None)


def test_what_another_query_kept_is_not_brought_again(bench: Any, rows_of: Rows, history: LocalHistory) -> None:
    session = bench.open(history=history)
    session.create_query("SELECT a.k, a.v, b.v FROM a JOIN b ON a.k = b.k WITHIN 2 HOURS", "keeps")
    push_numbered(bench, session, 0, 1, 2, 3)
    session.create_query(JOIN, "q", backfill=True)
    push_numbered(bench, session, 4)
    while session.backfills.step(3):
        pass
    bench.push(session)
    # No row is missing from the stores, so the history ends where the query begins, whatever the watermarks say.
    assert session.backfill("q") == BackfillStatus("done", 4, 4, len(pairs(3)), None)
    assert history.runs == [(0, 1, 2), (3,)]
    assert rows_of(session, "q") == pairs(4)


def test_a_query_without_time_bounds_is_backfilled_if_all_of_the_past_is_kept(
    bench: Any, rows_of: Rows, history: LocalHistory
) -> None:
    session = bench.open(history=history)
    session.create_query(FOR_EVER, "keeps")
    push_numbered(bench, session, 0, 1)
    session.create_query(FOR_EVER, "q", backfill=True)
    push_numbered(bench, session, 2)
    while session.backfills.step(1):
        pass
    bench.push(session)
    assert rows_of(session, "q") == rows_of(session, "keeps")
    assert session.backfill("q").state == "done"


def test_a_backfill_without_end_is_refused(bench: Any, history: LocalHistory) -> None:
    session = bench.open(history=history)
    push_numbered(bench, session, 0)
    with pytest.raises(QueryError, match="would never end: a, b is kept for ever") as refused:
        session.create_query(FOR_EVER, "q", backfill=True)
    assert "WITHIN" in str(refused.value.hint)
    assert session.engine.queries.named("q") is None


def test_before_the_first_batch_there_is_nothing_to_bring(bench: Any, history: LocalHistory) -> None:
    session = bench.open(history=history)
    session.create_query(FOR_EVER, "q", backfill=True)
    assert session.backfill("q") is None
    push_numbered(bench, session, 0)
    assert session.backfill("q") == BackfillStatus("done", 0, 0, 0, None)


def test_a_stream_that_comes_only_once_is_refused(bench: Any) -> None:
    session = bench.open(history=LocalHistory(once=["b"]))
    with pytest.raises(QueryError, match="'q' cannot be backfilled: stream 'b' comes only once"):
        session.create_query(JOIN, "q", backfill=True)


def test_an_engine_without_history_refuses(tmp_path: Path) -> None:
    engine = Engine(tmp_path, make_options())
    for name in ("a", "b"):
        engine.streams.create(Stream(name, (("k", INT), ("v", INT), ("ts", TIMESTAMP)), "ts"))
    with pytest.raises(QueryError, match="keeps no history"):
        engine.queries.create(JOIN, "q", {"backfill": True})
    engine.close()


def test_rows_that_were_late_stay_late_when_batches_run_as_one(
    bench: Any, rows_of: Rows, history: LocalHistory
) -> None:
    session = bench.open(history=history)
    bench.push(session, a=[(1, 0, 10)], b=[(1, 0, 10)])
    bench.push(session, a=[(1, 1, 20)], b=[(1, 1, 16)])
    bench.push(session, a=[(1, 2, 19)], b=[(1, 2, 15), (1, 3, 18)])  # a of 19 and b of 15 are late
    session.create_query(JOIN, "q", backfill=True)
    bench.push(session)
    assert session.backfills.step(9) == 4
    finish(bench, session)
    assert history.runs[0] == (0, 1, 2, 3)
    assert rows_of(session, "q") == [(0, 0), (1, 1), (1, 3)]


def test_a_smaller_lateness_after_a_restart_lets_old_rows_go_no_earlier(
    bench: Any, rows_of: Rows, history: LocalHistory
) -> None:
    session = bench.open(history=history, lateness="60 seconds")
    bench.push(session, a=[(1, 0, 10)], b=[(2, 0, 10)])
    bench.push(session, a=[(2, 1, 40)], b=[(2, 1, 40)])
    bench.push(session, b=[(1, 2, 12)])
    session.close()
    session = bench.open(history=history)
    session.create_query(JOIN, "q", backfill=True)
    bench.push(session)
    while session.backfills.step(1):
        pass
    finish(bench, session)
    assert rows_of(session, "q") == [(0, 2), (1, 1)]


def test_rows_that_are_gone_end_the_backfill_and_nothing_else(bench: Any, rows_of: Rows, history: LocalHistory) -> None:
    session = bench.open(history=history)
    push_numbered(bench, session, 0, 1, 2)
    session.create_query(JOIN, "q", backfill=True)
    push_numbered(bench, session, 3)
    history.lose(1)
    assert session.backfills.step(1) == 1
    assert session.backfills.step(1) == 0
    push_numbered(bench, session, 4)
    status = session.backfill("q")
    assert (status.state, status.batches_done, status.error) == ("failed", 1, "the rows of batch 1 are gone")
    assert session.engine.queries.named("q").answered_from == 3
    assert rows_of(session, "q") == [(0, 0), (3, 3), (3, 4), (4, 3), (4, 4)]


def test_a_query_that_fails_on_an_old_row_goes_on_live(bench: Any, rows_of: Rows, history: LocalHistory) -> None:
    session = bench.open(history=history)
    push_numbered(bench, session, 0, 1)
    session.create_query("SELECT 6 DIV a.v AS x FROM a JOIN b ON a.k = b.k WITHIN 0 SECONDS", "q", backfill=True)
    push_numbered(bench, session, 2)
    session.backfills.step(9)
    for _ in range(2):  # a new session finds out what the last one knew
        session.close()
        session = bench.open(history=history)
        session.backfills.step(9)
    push_numbered(bench, session, 3)
    status = session.backfill("q")
    assert (status.state, status.batches_done) == ("failed", 0)
    assert "the query fails on old rows" in str(status.error)
    assert session.engine.queries.named("q").state.value == "running"
    assert rows_of(session, "q") == [(2,), (3,)]


def test_what_fails_three_times_in_a_row_ends_the_backfill(
    bench: Any, history: LocalHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = bench.open(history=history)
    push_numbered(bench, session, 0, 1, 2)
    session.create_query(JOIN, "q", backfill=True)
    push_numbered(bench, session, 3)
    works = history.run

    def broken(*_: object) -> None:
        raise OSError("the network is down")

    def fail() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(history, "run", broken)
            with pytest.raises(OSError, match="network"):
                session.backfills.step(1)

    fail()
    fail()
    assert history.run == works
    assert session.backfills.step(1) == 1  # it comes right: the count begins anew
    for _ in range(3):
        fail()
    assert session.backfills.step(1) == 0
    push_numbered(bench, session, 4)
    assert (session.backfill("q").state, session.backfill("q").error) == ("failed", "the network is down")


def test_a_cancelled_backfill_keeps_what_it_brought_and_frees_the_rest(
    bench: Any, rows_of: Rows, history: LocalHistory
) -> None:
    session = bench.open(history=history)
    push_numbered(bench, session, 0, 1, 2)
    session.create_query(JOIN, "q", backfill=True)
    push_numbered(bench, session, 3)
    session.backfills.step(1)
    push_numbered(bench, session, 4)
    session.backfills.step(1)  # committed by the history, never adopted
    session.cancel_backfill("q")
    push_numbered(bench, session, 5)
    assert (session.backfill("q").state, session.backfill("q").batches_done) == ("cancelled", 1)
    assert session.backfills.step(1) == 0
    # The newest batch may be damaged: the state before still runs it.
    assert bench.files("backfill")
    bench.push(session)
    assert session.backfills.step(1) == 0
    assert bench.files("backfill") == set()
    assert (0, 0) in rows_of(session, "q")
    assert (1, 0) not in rows_of(session, "q")
    with pytest.raises(QueryError, match="has ended: cancelled"):
        session.engine.queries.set_options("q#1", {"backfill": True})


def test_a_backfill_may_be_asked_for_later(bench: Any, rows_of: Rows, history: LocalHistory) -> None:
    session = bench.open(history=history)
    push_numbered(bench, session, 0, 1)
    session.create_query(JOIN, "q")
    push_numbered(bench, session, 2, 3)
    session.engine.queries.set_options(session.engine.queries.named("q").id, {"backfill": True})
    push_numbered(bench, session, 4)
    finish(bench, session)
    assert rows_of(session, "q") == pairs(4)


def test_a_dropped_query_ends_its_backfill_and_frees_its_folder(bench: Any, history: LocalHistory) -> None:
    session = bench.open(history=history)
    push_numbered(bench, session, 0, 1)
    session.create_query(JOIN, "q", backfill=True)
    push_numbered(bench, session, 2)
    session.backfills.step(1)
    session.drop_query("q")
    push_numbered(bench, session, 3)
    assert session.backfill("q").state == "cancelled"
    session.close()
    session = bench.open(history=history)  # nobody was there to free it
    session.backfills.step(1)
    assert bench.files("backfill")
    bench.push(session)
    session.backfills.step(1)
    assert bench.files("backfill") == set()


def test_a_finished_backfill_leaves_nothing_but_answers(bench: Any, rows_of: Rows, history: LocalHistory) -> None:
    session = bench.open(history=history)
    push_numbered(bench, session, 0, 1, 2)
    session.create_query(JOIN, "q", backfill=True)
    push_numbered(bench, session, 3)
    finish(bench, session)
    bench.push(session)
    session.backfills.step(1)
    assert bench.files("backfill") == set()
    assert bench.files("answers") == {file.path for file in session.engine.answers.results("q#1")}
    session.vacuum()
    assert rows_of(session, "q") == pairs(3)


def test_sinks_find_the_answers_with_the_batches_that_adopted_them(bench: Any, history: LocalHistory) -> None:
    session = bench.open(history=history)
    push_numbered(bench, session, 0, 1, 2)
    session.create_query(JOIN, "q", backfill=True)
    push_numbered(bench, session, 3)
    session.backfills.step(2)
    push_numbered(bench, session, 4)
    finish(bench, session)
    found = []
    batch = -1
    while batch < session.engine.head.batch:
        batch, files = session.engine.answers.results_after("q#1", batch)
        found += files
    assert found == session.engine.answers.results("q#1")
    assert sum(file.rows for file in found) == len(pairs(4))


def test_vacuum_keeps_what_a_history_committed_and_takes_its_orphans(
    bench: Any, rows_of: Rows, history: LocalHistory
) -> None:
    session = bench.open(history=history, history_faults=Faults(crash_at="before_manifest"))
    push_numbered(bench, session, 0, 1, 2)
    session.create_query(JOIN, "q", backfill=True)
    push_numbered(bench, session, 3)
    with pytest.raises(SimulatedCrash):
        session.backfills.step(2)
    orphans = {path for path in bench.files("backfill") if path.endswith((".arrow", ".arrows"))}
    session.backfills.step(2)
    assert orphans <= set(session.vacuum().paths)
    finish(bench, session)
    assert rows_of(session, "q") == pairs(3)


def test_rows_are_run_again_in_turn_for_all_queries(bench: Any, rows_of: Rows, history: LocalHistory) -> None:
    session = bench.open(history=history)
    push_numbered(bench, session, 0, 1)
    for name in ("p", "q"):
        session.create_query(JOIN, name, backfill=True)
    push_numbered(bench, session, 2)
    for _ in range(4):
        session.backfills.step(1)
    assert history.runs == [(0,), (0,), (1,), (1,)]
    finish(bench, session)
    assert rows_of(session, "p") == rows_of(session, "q") == pairs(2)


@pytest.mark.parametrize(
    ("step", "history_step"),
    [
        # Every step of either beside some of the other; all pairs in `make test-all`.
        pytest.param(step, other, marks=() if (place + number) % len(HISTORY_STEPS) == 0 else pytest.mark.slow)
        for place, step in enumerate(CRASH_STEPS)
        for number, other in enumerate(HISTORY_STEPS)
    ],
)
def test_a_crash_of_either_at_any_step_doubles_and_loses_nothing(
    bench: Any, rows_of: Rows, history: LocalHistory, step: str, history_step: str
) -> None:
    session = bench.open(history=history)
    push_numbered(bench, session, 0, 1, 2)
    session.create_query(JOIN, "q", backfill=True)
    push_numbered(bench, session, 3)
    session.close()
    session = bench.open(history=history, history_faults=Faults(crash_at=history_step))
    with pytest.raises(SimulatedCrash):
        session.backfills.step(2)
    session.close()
    session = bench.open(history=history, faults=Faults(crash_at=step))
    session.backfills.step(1)
    with pytest.raises(SimulatedCrash):
        push_numbered(bench, session, 4)
    session.close()
    session = bench.open(history=history)
    if session.engine.head.batch < 4:
        push_numbered(bench, session, 4)
    finish(bench, session)
    assert rows_of(session, "q") == pairs(4)
    session.close()
    assert rows_of(bench.open(history=history), "q") == pairs(4)
