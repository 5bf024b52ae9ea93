"""A stream that falls silent: with a timeout it holds back nobody, and what it sends too late is counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from dovetail.engine.batch.idle_streams import IdleWatch, carry_along
from dovetail.query.stream import Stream
from dovetail.query.types import INT, TIMESTAMP, TIMESTAMP_NTZ
from dovetail.runtime.report import StreamCount
from dovetail.testing.local_session import LocalSession

if TYPE_CHECKING:
    from conftest import Bench

RowsOf = Callable[[LocalSession, str], list[tuple[Any, ...]]]
Q = "SELECT a.v, b.v FROM a JOIN b ON a.k = b.k WITHIN 5 SECONDS"


@dataclass
class HandClock:
    now: float = 2e9

    def __call__(self) -> float:
        return self.now


def stored_rows(session: LocalSession, store: str) -> int:
    return sum(meta.rows for meta in session.engine.head.state.buckets if meta.store == store)


def entry(session: LocalSession, stream: str) -> dict[str, Any]:
    assert session.progress is not None
    (found,) = [each for each in session.progress["streams"] if each["name"] == stream]
    return found


def test_without_a_timeout_a_silent_stream_keeps_its_partners_state(bench: Bench) -> None:
    clock = HandClock()
    session = bench.open(clock=clock)
    session.create_query(Q, "q")
    bench.push(session, a=[(1, 10, 0.0)], b=[(1, 20, 0.0)])
    for second in range(10, 60, 10):
        clock.now += 1000
        bench.push(session, a=[(1, second, float(second))])
    assert stored_rows(session, "a") == 6
    assert not entry(session, "b")["isIdle"]


def test_with_one_it_lets_state_go_and_its_late_rows_are_counted(bench: Bench, rows_of: RowsOf) -> None:
    clock = HandClock()
    session = bench.open(clock=clock, idle_timeout="1 minute", lateness="2 seconds")
    session.create_query(Q, "q")
    bench.push(session, a=[(1, 10, 0.0)], b=[(1, 20, 0.0)])
    clock.now += 59
    bench.push(session, a=[(1, 11, 100.0)])
    assert (stored_rows(session, "a"), entry(session, "b")["isIdle"]) == (2, False)
    clock.now += 1
    bench.push(session, a=[(1, 12, 200.0)])
    assert entry(session, "b")["isIdle"]
    assert entry(session, "b")["watermark"] == entry(session, "a")["watermark"]
    assert stored_rows(session, "a") == 1, "b counts as being at 200 s: rows before 193 s find no partner any more"

    bench.push(session, b=[(1, 21, 197.9), (1, 22, 198.0)])
    assert (entry(session, "b")["lateRows"], entry(session, "b")["isIdle"]) == (1, False)
    assert rows_of(session, "q") == [(10, 20), (12, 22)]


def test_it_is_as_far_as_before_after_a_restart_and_time_off_does_not_count(bench: Bench, rows_of: RowsOf) -> None:
    clock = HandClock()
    session = bench.open(clock=clock, idle_timeout="1 minute")
    session.create_query(Q, "q")
    bench.push(session, a=[(1, 10, 0.0)], b=[(1, 20, 0.0)])
    clock.now += 60
    bench.push(session, a=[(1, 11, 100.0)])
    session.close()
    clock.now += 1e6
    again = bench.open(clock=clock, idle_timeout="1 minute")
    bench.push(again, a=[(1, 12, 200.0)], b=[(1, 21, 99.9), (1, 22, 100.0)])
    assert (entry(again, "b")["lateRows"], entry(again, "b")["isIdle"]) == (1, False)
    assert rows_of(again, "q") == [(10, 20), (11, 22)]
    again.close()
    third = bench.open(clock=clock, idle_timeout="1 minute")
    bench.push(third, a=[(1, 13, 300.0)])
    assert not entry(third, "b")["isIdle"], "it was silent for one batch of this process"


def test_a_stream_that_never_sent_holds_nobody_back_either(bench: Bench) -> None:
    clock = HandClock()
    session = bench.open(clock=clock, idle_timeout="1 minute")
    session.create_query(Q, "q")
    for batch in range(4):
        bench.push(session, a=[(1, batch, 100.0 * batch)])
        clock.now += 40
    assert stored_rows(session, "a") == 1


def count(stream: str, rows: int) -> StreamCount:
    return StreamCount(stream, rows, 0, None)


def test_silence_is_measured_from_the_beginning_of_batches() -> None:
    watch = IdleWatch(10.0)
    assert watch.idle(["a", "b"], [count("a", 1)], 0.0) == set()
    assert watch.idle(["a", "b"], [count("a", 1), count("b", 0)], 9.0) == set()
    assert watch.idle(["a", "b"], [count("a", 1)], 10.0) == {"b"}
    assert watch.idle(["a", "b"], [count("b", 1)], 11.0) == set()
    assert watch.idle(["a", "b"], [], 21.0) == {"a", "b"}
    assert IdleWatch(None).idle(["a"], [], 1e9) == set()


@pytest.mark.parametrize(
    ("times", "idle", "expected"),
    [
        ({"a": 5, "b": 3, "c": 1}, {"c"}, {"a": 5, "b": 3, "c": 3}),
        ({"a": 5, "b": 3, "c": 9}, {"c"}, {"a": 5, "b": 3, "c": 9}),
        ({"a": 5, "b": 3}, {"c"}, {"a": 5, "b": 3, "c": 3}),
        ({"a": 5, "b": 3}, {"a", "b", "c"}, {"a": 5, "b": 3}),
        ({"a": 5, "b": 3}, {"local", "timeless"}, {"a": 5, "b": 3}),
        ({"a": 5, "gone": 1, "b": 2}, {"b"}, {"a": 5, "gone": 1, "b": 5}),
    ],
)
def test_idle_streams_are_as_far_as_the_slowest_that_sends(
    times: dict[str, int], idle: set[str], expected: dict[str, int]
) -> None:
    streams = {name: Stream(name, (("k", INT), ("ts", TIMESTAMP)), "ts") for name in "abc"}
    streams["local"] = Stream("local", (("ts", TIMESTAMP_NTZ),), "ts")
    streams["timeless"] = Stream("timeless", (("k", INT),))
    assert carry_along(times, frozenset(idle), streams) == expected
