"""What takes how long, in laps: whatever is done for a query is charged to it once."""

from __future__ import annotations

import time


class Stopwatch:
    """Runs from the moment it is made."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    @property
    def running_s(self) -> float:
        """Since the last lap."""
        return time.perf_counter() - self._began

    def lap(self) -> float:
        """Seconds since the last lap; the next one begins."""
        now = time.perf_counter()
        taken_s, self._began = now - self._began, now
        return taken_s
