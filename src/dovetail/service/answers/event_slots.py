"""How many event streams are open, in all and per token, and the answer that gives its place back."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import AsyncIterator

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from dovetail.service.access.refusals import TooMany
from dovetail.service.config.options import Limits
from dovetail.service.metrics import Metrics

_RETRY_S = 10.0


class EventSlots:
    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self._limits = limits
        self._metrics = metrics
        self._lock = threading.Lock()
        self._open: Counter[str] = Counter()

    def check(self, name: str) -> None:
        with self._lock:
            self._check(name)

    def take(self, name: str) -> None:
        with self._lock:
            self._check(name)
            self._open[name] += 1
            self._metrics.event_streams.inc()

    def give_back(self, name: str) -> None:
        with self._lock:
            self._open[name] -= 1
            self._metrics.event_streams.dec()
            if not self._open[name]:
                del self._open[name]

    def _check(self, name: str) -> None:
        mine, total = self._open[name], self._open.total()
        if mine >= self._limits.event_streams_per_token or total >= self._limits.event_streams:
            raise TooMany(
                f"{mine} event streams of token {name!r} are open, {total} in all",
                hint="close one that is no longer needed",
                retry_after_s=_RETRY_S,
            )


class EventAnswer(StreamingResponse):
    """Holds one place from its first byte to its end, however that comes."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[bytes], slots: EventSlots, name: str) -> None:
        # A proxy that collects the answer would hold back events.
        super().__init__(events, headers={"X-Accel-Buffering": "no"})
        self._slots = slots
        self._name = name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._slots.take(self._name)
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._slots.give_back(self._name)
