"""The clock jumps back by hours or weeks: no committed row is judged anew, and what is kept aside comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dovetail.engine.backfill.record import BackfillState
from dovetail.store.manifest import read_manifests
from dovetail.testing.local_history import LocalHistory
from dovetail.testing.local_session import LocalSession

TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema([("k", pa.int64()), ("ts", TIME)])
SECOND_US = 1_000_000
NOW_S = 1_767_225_600.0
HOUR_S, WEEK_S = 3600.0, 7 * 86_400.0
SQL = "SELECT a.k FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL 10 SECONDS AND a.ts + INTERVAL 10 SECONDS"


class JumpingClock:
    def __init__(self) -> None:
        self.now_s = NOW_S

    def __call__(self) -> float:
        self.now_s += 0.25
        return self.now_s


def opened(folder: Path, clock: JumpingClock, history: LocalHistory) -> LocalSession:
    session = LocalSession(folder, clock=clock, history=history)
    for name in ("a", "b"):
        session.create_stream(name, SCHEMA, "ts")
    return session


def push(session: LocalSession, batch: int) -> None:
    """Rows of the time that it really is."""
    times = pa.array([int(NOW_S + batch) * SECOND_US], pa.int64()).cast(TIME)
    table = pa.table({"k": [batch], "ts": times}, schema=SCHEMA)
    session.push({"a": table, "b": table})


def rates(session: LocalSession) -> list[float]:
    progress: Any = session.progress
    return [stream["rowsPerSecond"] for stream in progress["streams"] if stream.get("rowsPerSecond") is not None]


def found(session: LocalSession, name: str) -> list[int]:
    return sorted(session.results(name).column("k").to_pylist())


@pytest.mark.parametrize("is_reopened", [False, True], ids=["while running", "between two processes"])
def test_hours_back_change_nothing(tmp_path: Path, *, is_reopened: bool) -> None:
    clock, history = JumpingClock(), LocalHistory()
    session = opened(tmp_path, clock, history)
    session.create_query(SQL, "pairs")
    for batch in range(6):
        if batch == 3:
            clock.now_s -= 20 * HOUR_S
            if is_reopened:
                session.close()
                session = opened(tmp_path, clock, history)
        push(session, batch)
        assert all(rate >= 0 for rate in rates(session))
    assert found(session, "pairs") == list(range(6))
    assert session.bad_rows("a") == []
    session.close()


def test_weeks_back_put_rows_aside_until_the_clock_is_right_and_committed_ones_stay(tmp_path: Path) -> None:
    clock, history = JumpingClock(), LocalHistory()
    with opened(tmp_path, clock, history) as session:
        session.create_query(SQL, "pairs")
        push(session, 0)
        bound_us = next(iter(read_manifests(tmp_path))).arrival.last_time_us["a"]
        clock.now_s -= WEEK_S
        push(session, 1)
        assert found(session, "pairs") == [0]
        assert [row.values["k"] for row in session.bad_rows("a")] == [1]
        # The rows of batch 0 are judged by the clock as it was then.
        session.create_query(SQL, "later", backfill=True)
        push(session, 2)
        while session.backfills.step(10):
            pass
        clock.now_s += WEEK_S
        for stream in ("a", "b"):
            session.retry_bad_rows(stream)
        push(session, 3)
        while session.backfills.step(10):
            pass
        push(session, 4)
        assert found(session, "pairs") == [0, 1, 2, 3, 4]
        backfill = next(r for r in session.engine.queries.records() if r.name == "later").backfill
        assert backfill is not None
        assert backfill.state is BackfillState.DONE
        assert found(session, "later") == [0, 1, 2, 3, 4]
        assert session.bad_rows("a") == []
        assert next(iter(read_manifests(tmp_path))).arrival.last_time_us["a"] == bound_us
