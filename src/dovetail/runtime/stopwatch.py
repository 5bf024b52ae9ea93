"""What takes how long, in laps: whatever is done for a query is charged to it once.

By the time that this thread works. Waiting, for a disk or for a core that others have, is no query's fault: on a busy
machine it would stop whoever comes to sync its answers.
"""

from __future__ import annotations

import time


class Stopwatch:
    """Runs from the moment it is made."""

    def __init__(self) -> None:
        self._began = time.thread_time()

    @property
    def running_s(self) -> float:
        """Since the last lap."""
        return time.thread_time() - self._began

    def lap(self) -> float:
        """Seconds since the last lap; the next one begins."""
        now = time.thread_time()
        taken_s, self._began = now - self._began, now
        return taken_s
