from __future__ import annotations

import time
from typing import Any

import pytest

from dovetail.engine.backfill import thread as backfill_thread
from dovetail.engine.backfill.thread import MAX_BATCHES, BackfillThread, Pace
from dovetail.testing.local_history import LocalHistory

JOIN = "SELECT a.v AS av, b.v AS bv FROM a JOIN b ON a.k = b.k WITHIN 5 SECONDS"
PATIENCE_S = 20.0


def test_a_chunk_grows_until_it_takes_as_long_as_a_batch() -> None:
    pace = Pace()
    for seconds in (0.1, 0.2, 0.4, 0.8, 1.1):
        pace.note(pace.batches, seconds, target_s=2.0)
    assert pace.batches == 16
    pace.note(16, 8.0, target_s=2.0)
    assert pace.batches == 4
    pace.note(4, 30.0, target_s=2.0)
    assert pace.batches == 1


def test_a_chunk_that_was_all_there_was_says_nothing() -> None:
    pace = Pace()
    pace.note(1, 0.1, target_s=2.0)
    pace.note(1, 0.1, target_s=2.0)
    assert pace.batches == 2


def test_chunks_stay_within_bounds_whatever_a_batch_takes() -> None:
    pace = Pace()
    for _ in range(20):
        pace.note(pace.batches, 0.2, target_s=0.0)
    assert pace.batches == MAX_BATCHES
    pace.note(MAX_BATCHES, 10.0, target_s=1000.0)
    assert pace.batches == MAX_BATCHES // 2


def test_the_thread_rests_after_each_chunk_and_wakes_for_new_batches(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill_thread, "REST_PER_WORK", 0.1)
    history = LocalHistory()
    session = bench.open(history=history)
    for batch in range(4):
        bench.push(session, a=[(1, batch, batch)], b=[(1, batch, batch)])
    thread = BackfillThread(session.engine, session.backfills)
    thread.start()
    session.create_query(JOIN, "q", backfill=True)
    deadline = time.monotonic() + PATIENCE_S
    second = 1000
    while session.backfill("q") is None or session.backfill("q").state == "running":
        assert time.monotonic() < deadline
        bench.push(session, a=[(9, 0, second)], b=[(8, 0, second)])
        second += 1000
        time.sleep(0.01)
    thread.stop()
    assert session.backfill("q").state == "done"
    assert session.backfill("q").rows == 16
    assert history.runs[0] == (0,)
    # How many batches the next chunks take depends on how fast this machine is just now.
    taken = [batch for run in history.runs for batch in run]
    assert taken == list(range(len(taken)))
    assert len(history.runs) > 1


def test_what_fails_is_tried_again_and_stop_does_not_wait_for_it(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    history = LocalHistory()
    session = bench.open(history=history)
    bench.push(session, a=[(1, 0, 0)], b=[(1, 0, 0)])
    session.create_query(JOIN, "q", backfill=True)
    bench.push(session)
    tries = []

    def broken(*_: object) -> None:
        tries.append(time.monotonic())
        raise OSError("the network is down")

    monkeypatch.setattr(history, "run", broken)
    monkeypatch.setattr(backfill_thread, "RETRY_S", 0.05)
    thread = BackfillThread(session.engine, session.backfills)
    thread.start()
    deadline = time.monotonic() + PATIENCE_S
    while len(tries) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    thread.stop()
    bench.push(session)
    assert session.backfill("q").state == "failed"
