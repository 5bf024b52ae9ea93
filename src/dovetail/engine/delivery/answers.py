"""The committed answers of a session: which files they are, and who hears when there are more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dovetail.engine.delivery.commit_news import Listener, Listeners
from dovetail.engine.delivery.result_index import ResultIndex
from dovetail.engine.head import Head
from dovetail.store.manifest import ResultPart


class Answers:
    """Thread-safe: a commit only wakes whoever waits, and reading never waits for a batch."""

    def __init__(self, root: Path, head: Head) -> None:
        self._head = head
        self._results = ResultIndex(root)
        self._listeners = Listeners()

    def results(self, query_id: str) -> list[ResultPart]:
        with self._head.lock:
            return self._results.of(query_id)

    def results_after(self, query_id: str, batch: int) -> tuple[int, tuple[ResultPart, ...]]:
        """The first batch later than `batch` with answers, and their files; else the newest batch and no file."""
        with self._head.lock:
            return self._results.after(query_id, batch) or (self._head.batch, ())

    def await_batch(self, batch: int, timeout_s: float | None = None) -> bool:
        """Until `batch` is committed; False when the time is up first."""
        return self._head.wait_for(lambda: self._head.batch >= batch, timeout_s)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Have `listener` called after every commit, in the batch's thread; the answer ends it."""
        return self._listeners.add(listener)

    # What a commit says

    def add(self, batch: int, results: tuple[ResultPart, ...]) -> None:
        with self._head.lock:
            self._results.add(batch, results)

    @property
    def listeners(self) -> tuple[Listener, ...]:
        return self._listeners.now
