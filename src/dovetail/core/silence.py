"""What is said while nothing comes: first after a moment, then when the reason changes, else every few seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

FIRST_S = 2.0
AGAIN_S = 10.0

OnWait = Callable[[str], None]
"""Told why nothing comes, in one line."""


def say_on_stderr(text: str) -> None:
    """Where piped answers stay clean."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


@dataclass(frozen=True)
class Waiting:
    """Why there is nothing new. The `text` of one `reason` may change: seconds and counts go on in it."""

    reason: str
    text: str


class Silence:
    """Whoever waits asks `is_due` whether something should be said, and calls `heard` when an answer comes."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._told: str | None = None
        self._since = now()

    def heard(self) -> None:
        self._told, self._since = None, self._now()

    @property
    def lasts_s(self) -> float:
        """Since the last answer, or since something was said."""
        return self._now() - self._since

    @property
    def may_be_due(self) -> bool:
        """Whether it is worth asking why."""
        return self.lasts_s >= FIRST_S

    def is_due(self, waiting: Waiting) -> bool:
        """Whether to say it now; once it is, it counts as said."""
        if self.lasts_s < (FIRST_S if self._told != waiting.reason else AGAIN_S):
            return False
        self._told, self._since = waiting.reason, self._now()
        return True
