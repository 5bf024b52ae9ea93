"""A query pays for work, and not for what keeps everybody waiting."""

from __future__ import annotations

import threading

from dovetail.runtime.stopwatch import Stopwatch

WAITED_S = 0.2


def test_waiting_is_not_charged() -> None:
    watch = Stopwatch()
    threading.Event().wait(WAITED_S)
    assert watch.lap() < WAITED_S


def test_work_is_charged() -> None:
    watch = Stopwatch()
    sum(range(300_000))
    assert watch.running_s > 0
    assert watch.lap() > 0
