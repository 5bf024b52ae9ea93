"""The committed answers of a session: which files they are, and who hears when there are more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dovetail.engine.delivery.commit_news import Listener, Listeners
from dovetail.engine.delivery.result_index import ResultIndex
from dovetail.engine.head import Head
from dovetail.store.manifest import ResultPart


class Answers:
    """Thread-safe: a commit only wakes whoever waits, and reading never waits for a batch.

    The first look since the start reads all manifests; only who wants answers waits for that.
    """

    def __init__(self, root: Path, head: Head) -> None:
        self._head = head
        self._results = ResultIndex(root, head)
        self._listeners = Listeners()

    def results(self, query_id: str) -> list[ResultPart]:
        return self._results.of(query_id)

    def results_after(self, query_id: str, batch: int) -> tuple[int, tuple[ResultPart, ...]]:
        """The first batch later than `batch` with answers, and their files; else the newest batch and no file."""
        self._results.be_read()
        found = self._results.known_after(query_id, batch)
        assert found is not None
        return found

    def known_after(self, query_id: str, batch: int) -> tuple[int, tuple[ResultPart, ...]] | None:
        """The same without reading anything; None while the manifests are not read."""
        return self._results.known_after(query_id, batch)

    def await_batch(self, batch: int, timeout_s: float | None = None) -> bool:
        """Until `batch` is committed; False when the time is up first."""
        return self._head.wait_for(lambda: self._head.batch >= batch, timeout_s)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Have `listener` called after every commit, in the batch's thread; the answer ends it."""
        return self._listeners.add(listener)

    # What a commit says

    def add(self, results: tuple[ResultPart, ...]) -> None:
        """Under the head's lock, with which the head moves to their batch."""
        self._results.add(results)

    @property
    def listeners(self) -> tuple[Listener, ...]:
        return self._listeners.now
