"""The moment at which a program ends itself, with its JVM, by SIGKILL: nothing is closed, flushed or told."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

STARTING, OPENING, RUNNING, CREATING, CHANGING, DROPPING, STOPPING = (
    "starting",
    "opening",
    "running",
    "creating",
    "changing",
    "dropping",
    "stopping",
)
"""Phases of a run: until Spark is up; until the session has started; batches; a query is created; the batches until
the plan has it; one is dropped; the session stops."""
TOLD = "told"
"""The step after the last of a batch: it is committed here, and Spark does not know yet."""


@dataclass(frozen=True)
class Moment:
    """In `phase`: at the `nth` time that a batch reaches `step`; or at the driver's `nth` sync; or after `delay_s`."""

    phase: str
    step: str | None = None
    is_sync: bool = False
    nth: int = 1
    delay_s: float | None = None

    @property
    def text(self) -> str:
        if self.delay_s is not None:
            return f"{self.phase}, after {self.delay_s:.3f} s"
        return f"{self.phase}, {'sync' if self.is_sync else self.step} {self.nth}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Strike:
    """Hears of phases, steps and syncs; strikes once."""

    def __init__(self, moment: Mapping[str, Any] | None) -> None:
        self._moment = None if moment is None else Moment(**moment)
        self._phase = ""
        self._count = 0
        self._lock = threading.Lock()
        self._fsync = os.fsync
        if self._moment is not None and self._moment.is_sync:
            os.fsync = self._sync  # type: ignore[assignment]

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        before, self._phase = self._phase, name
        moment = self._moment
        if moment is not None and moment.phase == name and moment.delay_s is not None:
            timer = threading.Timer(moment.delay_s, kill_all)
            timer.daemon = True
            timer.start()
        yield
        self._phase = before

    def on_step(self, step: str) -> None:
        if self._moment is not None and self._moment.step == step:
            self._reached()

    def _sync(self, opened: Any) -> None:
        # Before it: what is written is not on the disk, but the kernel has it.
        self._reached()
        self._fsync(opened)

    def _reached(self) -> None:
        assert self._moment is not None
        if self._phase == self._moment.phase:
            with self._lock:
                self._count += 1
                if self._count == self._moment.nth:
                    kill_all()


def kill_all() -> None:
    """The process is the first of its group, and its JVM is in it."""
    os.killpg(os.getpid(), signal.SIGKILL)
