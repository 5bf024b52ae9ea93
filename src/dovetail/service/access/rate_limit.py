"""How fast a token may ask or change things: a bucket of permits that fills at a steady rate."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from dovetail.service.access.refusals import TooMany

_NAMES_REMEMBERED = 10_000


class RateLimit:
    """One bucket per name; a full one is forgotten, because a new one would be the same."""

    def __init__(self, what: str, per_s: float, burst: int, now: Callable[[], float] = time.monotonic) -> None:
        """`what` is counted: changes, requests."""
        self._what = what
        self._per_s = per_s
        self._burst = float(burst)
        self._now = now
        self._lock = threading.Lock()
        self._permits: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> None:
        """One permit, or `TooMany` with the time until there is one."""
        with self._lock:
            now = self._now()
            left, seen_at = self._permits.get(name, (self._burst, now))
            left = min(left + (now - seen_at) * self._per_s, self._burst)
            if left < 1.0:
                raise TooMany(
                    f"too many {self._what} at once",
                    hint=f"send at most {self._per_s:g} a second",
                    retry_after_s=(1.0 - left) / self._per_s,
                )
            self._permits[name] = left - 1.0, now
            if len(self._permits) > _NAMES_REMEMBERED:
                self._forget_full(now)

    def _forget_full(self, now: float) -> None:
        self._permits = {
            name: (left, seen_at)
            for name, (left, seen_at) in self._permits.items()
            if left + (now - seen_at) * self._per_s < self._burst
        }
