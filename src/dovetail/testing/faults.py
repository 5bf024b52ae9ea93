"""Faults on demand: a crash at a named step, tasks that run twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dovetail.runtime.message import Message

CRASH_STEPS = (
    "before_run",
    "after_source",
    "after_run",
    "before_state",
    "before_manifest",
    "after_manifest",
    "during_cleanup",
)


class SimulatedCrash(BaseException):
    """The process would be gone here: no `except Exception` may go on as if it were not."""


@dataclass
class Faults:
    """`crash_at` fires once, when its step is reached; `retry_tasks` leaves every first attempt as an orphan."""

    crash_at: str | None = None
    retry_tasks: bool = False

    def __post_init__(self) -> None:
        if self.crash_at is not None and self.crash_at not in CRASH_STEPS:
            raise ValueError(f"no step {self.crash_at!r}; steps are {', '.join(CRASH_STEPS)}")

    def on_step(self, step: str) -> None:
        if step == self.crash_at:
            self.crash_at = None
            raise SimulatedCrash(step)

    def run_task(self, task: Callable[[], Iterator[Message]]) -> list[Message]:
        if self.retry_tasks:
            list(task())
        return list(task())
