"""Work beside the batches: in a thread of its own that gives way to them and never keeps the process from ending."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

NICENESS = 10
_log = logging.getLogger("dovetail")

Answer = TypeVar("Answer")


class Background(Generic[Answer]):
    """Starts at once. `answer` stays None if the work fails: that is logged, and no reason to fail a batch."""

    def __init__(self, what: str, work: Callable[[], Answer], *, gives_way: bool = True) -> None:
        """`gives_way` off: a batch waits for it, so there is nobody to give way to."""
        self._what = what
        self._work = work
        self._gives_way = gives_way
        self.answer: Answer | None = None
        self.seconds = 0.0
        self.core_seconds = 0.0
        """Without what it waited for others: on a busy machine a thread that gives way waits long."""
        self._thread = threading.Thread(target=self._run, name="dovetail-planner", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def wait(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        began, core_began = time.perf_counter(), time.thread_time()
        if self._gives_way:
            _give_way()
        try:
            self.answer = self._work()
        except Exception:  # noqa: BLE001 - what runs is as good as it was: no reason to fail a batch
            _log.exception("%s failed, what runs stays", self._what)
        self.seconds = time.perf_counter() - began
        self.core_seconds = time.thread_time() - core_began
        _log.info("%s took %.2f s", self._what, self.seconds)


def _give_way() -> None:
    """Batches first: on Linux a thread has a priority of its own."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
