"""The newest committed batch of a checkpoint: everybody reads it, only a commit moves it.

There are two locks, and this is who has them:

    Plans.lock   held while a plan is made, which takes longer than anybody should wait who creates a query
    Head.lock    held for moments, by whoever needs that the head stays where it is: changes of queries and streams,
                 the edge of a batch, readers of answers

Whoever has the lock of plans may take that of the head, never the other way round.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable

from dovetail.engine.progress.figures import BatchFigures
from dovetail.engine.progress.recent_batches import RecentBatches
from dovetail.engine.state import EngineState
from dovetail.stats.catalog import StatsCatalog
from dovetail.store.bucket_file import BucketMeta


class Head:
    """Owns the lock of everything that is committed or accepted. `given` statistics are the user's own."""

    def __init__(self, state: EngineState, given: StatsCatalog | None = None) -> None:
        self.lock = threading.RLock()
        self._moved = threading.Condition(self.lock)
        self._state = state
        self._is_told = True
        self.recent = RecentBatches()
        self._given = given or StatsCatalog()
        self._statistics = self._given

    @property
    def state(self) -> EngineState:
        """As the last committed batch left it."""
        return self._state

    @property
    def batch(self) -> int:
        return self._state.batch

    @property
    def statistics(self) -> StatsCatalog:
        """What is known of the data after the last batch whose figures were tallied; what the user gave comes first.

        The same object until another's are: whoever plans by it sees at a glance that nothing changed.
        """
        with self.lock:
            state = self._state
            if self._statistics is self._given or self._statistics.observed.tallied != state.observed.tallied:
                self._statistics = self._given.with_observed(state.observed, _row_bytes_by_store(state.buckets))
            return self._statistics

    @property
    def figures(self) -> BatchFigures | None:
        """What happened in the last batch; None before the first one of this process."""
        return self.recent.last

    def move(self, state: EngineState) -> None:
        """The state is committed. Whoever waits for it is woken by `announce`, once its figures are taken."""
        with self.lock:
            self._state, self._is_told = state, False

    def announce(self, figures: BatchFigures) -> None:
        with self.lock:
            self.recent.note(figures)
            self._is_told = True
            self._moved.notify_all()

    def wait_for(self, is_there: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """Until a commit makes it true; False when the time is up first."""
        with self.lock:
            return self._moved.wait_for(is_there, timeout_s)

    def await_told(self, timeout_s: float) -> bool:
        """Until the figures are those of the newest batch; False when the time is up first."""
        return self.wait_for(lambda: self._is_told, timeout_s)


def _row_bytes_by_store(buckets: Iterable[BucketMeta]) -> dict[str, float]:
    rows: Counter[str] = Counter()
    size: Counter[str] = Counter()
    for meta in buckets:
        rows[meta.store] += meta.home_rows
        size[meta.store] += meta.size_bytes
    return {store: size[store] / rows[store] for store in rows if rows[store]}
