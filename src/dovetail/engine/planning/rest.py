"""How long a background planner rests after each answer: where data never rest, it would take a core else.

It is the time that a core worked that counts. On a busy machine a thread that gives way to batches mostly waits, and
would then rest the longer the less it had done.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

BUSY_SHARE = 0.1
"""Of a core's time, for one planner."""
LONGEST_REST_S = 30.0
"""The first time, kernels are compiled: no reason to rest for minutes."""


@dataclass(frozen=True)
class Rest:
    """Until a moment of this process's clock."""

    until: float = 0.0

    @property
    def is_over(self) -> bool:
        return time.perf_counter() >= self.until

    @staticmethod
    def after(core_seconds: float) -> Rest:
        """That begins now: something took so much of a core."""
        return Rest(time.perf_counter() + min(core_seconds * (1 / BUSY_SHARE - 1), LONGEST_REST_S))
