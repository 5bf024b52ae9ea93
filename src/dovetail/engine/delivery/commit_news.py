"""What listeners hear of every committed batch: sinks, result streams, metrics."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dovetail.store.manifest import ResultFile


@dataclass(frozen=True)
class CommitNews:
    """Batch `batch` is committed: its progress, and the files of its answers."""

    batch: int
    progress: Mapping[str, Any]
    results: tuple[ResultFile, ...]


Listener = Callable[[CommitNews], None]
"""Called in the batch's own thread: it must be quick, and the next batch waits for it."""
_log = logging.getLogger("dovetail")


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

    def tell(self, news: CommitNews) -> None:
        with self._lock:
            listeners = tuple(self._listeners)
        for listener in listeners:
            try:
                listener(news)
            except Exception:  # noqa: BLE001 - the batch is committed, whatever they do
                _log.exception("a listener failed on batch %d", news.batch)
