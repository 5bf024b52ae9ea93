"""What listeners hear of every committed batch: sinks, result streams, metrics."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from dovetail.engine.progress.figures import BatchFigures
from dovetail.store.manifest import ResultPart


@dataclass(frozen=True)
class CommitNews:
    """Batch `batch` is committed: its figures, and the parts of its answers."""

    batch: int
    figures: BatchFigures
    results: tuple[ResultPart, ...]


Listener = Callable[[CommitNews], None]
"""Called in the batch's own thread: it must be quick, for the next batch waits for it. If it fails, that is counted."""


class Listeners:
    """Who hears of commits. Thread-safe: they come and go while a batch runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: list[Listener] = []

    def add(self, listener: Listener) -> Callable[[], None]:
        """From the next commit on; the answer ends it."""
        with self._lock:
            self._listeners.append(listener)

        def end() -> None:
            with self._lock:
                self._listeners.remove(listener)

        return end

    @property
    def now(self) -> tuple[Listener, ...]:
        with self._lock:
            return tuple(self._listeners)
