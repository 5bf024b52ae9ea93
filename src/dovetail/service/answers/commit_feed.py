"""Commits as the event loop hears them: a bridge from the batch's thread that holds nothing per client.

Whoever waits is woken and then looks for itself: at the registry, at the answers' files, at the newest progress
records. So a slow client costs no memory, and one that comes back finds what it missed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from dovetail.engine.delivery.commit_news import CommitNews
from dovetail.engine.engine import Engine
from dovetail.engine.progress.print_progress import print_progress

PROGRESS_KEPT = 64


class CommitFeed:
    """Opened and used on one event loop; only `_hear` is called from elsewhere."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pulse = asyncio.Event()
        self._unlisten: Callable[[], None] | None = None
        self.recent: deque[tuple[int, Mapping[str, Any]]] = deque(maxlen=PROGRESS_KEPT)
        self.end_reason: str | None = None

    def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._unlisten = self._engine.answers.listen(self._hear)

    def close(self) -> None:
        if self._unlisten is not None:
            self._unlisten()
            self._unlisten = None
        self._loop = None

    @property
    def pulse(self) -> asyncio.Event:
        """Set at the next commit or at the end. Take it first, then look, then wait: so no commit is missed."""
        return self._pulse

    async def wait(self, pulse: asyncio.Event, timeout_s: float) -> bool:
        """Until the pulse; False when the time is up first."""
        try:
            async with asyncio.timeout(max(timeout_s, 0.0)):
                await pulse.wait()
        except TimeoutError:
            return False
        return True

    def end(self, reason: str) -> None:
        """Wake everyone for the last time; from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._end, reason)

    def _hear(self, news: CommitNews) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._take, news.batch, print_progress(news.figures))

    def _take(self, batch: int, progress: Mapping[str, Any]) -> None:
        self.recent.append((batch, progress))
        self._beat()

    def _end(self, reason: str) -> None:
        self.end_reason = self.end_reason or reason
        self._beat()

    def _beat(self) -> None:
        self._pulse.set()
        if self.end_reason is None:
            self._pulse = asyncio.Event()
