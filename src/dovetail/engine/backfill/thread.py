"""Runs backfills beside a session's batches, so slowly that these hardly notice (A6).

Chunk after chunk, with a rest after each in proportion to its time. A chunk grows until it takes about as long as one
of the session's batches does: short enough to stand aside soon, long enough to be worth its fixed cost.
"""

from __future__ import annotations

import logging
import threading
import time

from dovetail.engine.backfill.backfills import Backfills
from dovetail.engine.engine import Engine

REST_PER_WORK = 4.0
"""So a backfill works a fifth of the time, on one core."""
MIN_CHUNK_S, MAX_CHUNK_S = 0.5, 5.0
MAX_BATCHES = 64
RETRY_S = 10.0
_log = logging.getLogger("dovetail")


class Pace:
    """How many old batches to run as one, from how long the last ones took."""

    def __init__(self) -> None:
        self.batches = 1

    def note(self, batches: int, seconds: float, target_s: float) -> None:
        """A chunk of so many batches took so long; a short one that was all there was says nothing."""
        target_s = min(max(target_s, MIN_CHUNK_S), MAX_CHUNK_S)
        if seconds > target_s:
            self.batches = max(1, int(batches * target_s / seconds))
        elif batches == self.batches and seconds < target_s / 2:
            self.batches = min(2 * self.batches, MAX_BATCHES)


class BackfillThread:
    """Begins with `start`; `stop` waits for the chunk under way."""

    def __init__(self, engine: Engine, backfills: Backfills) -> None:
        self._engine = engine
        self._backfills = backfills
        self._pace = Pace()
        self._is_ended = False
        # Set when there may be something to do: a batch was committed, or the end has come.
        self._news = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if self._thread is None:
            self._engine.answers.listen(lambda _: self._news.set())
            self._thread = threading.Thread(target=self._run, name="dovetail-backfill", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._is_ended = True
        self._news.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._is_ended:
            self._news.clear()
            rest_s = self._work()
            if rest_s is None:
                self._news.wait()
            else:
                self._rest(rest_s)

    def _work(self) -> float | None:
        """One chunk, if there is one; how long to rest now, None until there is news."""
        began = time.monotonic()
        try:
            batches = self._backfills.step(self._pace.batches)
        except Exception:  # noqa: BLE001 - it is noted with its backfill, and everything else goes on
            _log.exception("a chunk of a backfill failed")
            return RETRY_S
        if not batches:
            return None
        worked_s = time.monotonic() - began
        self._pace.note(batches, worked_s, self._backfills.batch_seconds)
        return worked_s * REST_PER_WORK

    def _rest(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._is_ended and time.monotonic() < until:
            self._news.wait(until - time.monotonic())
            self._news.clear()
