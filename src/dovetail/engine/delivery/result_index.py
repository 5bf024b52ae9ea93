"""Which committed answers a query has, and where they lie."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path

from dovetail.engine.head import Head
from dovetail.store.layout import result_batch
from dovetail.store.manifest import ResultPart, read_manifests

_ByQuery = dict[str, list[ResultPart]]


class ResultIndex:
    """Committed answers by query; read from the manifests once somebody asks, then kept up.

    Nothing is read before: there is a manifest for every batch that ever was, and a restart must not wait for them.
    Nor does anybody wait for them who wants no answers: they are read without the head's lock, up to the batch where
    the head stood, and what is committed meanwhile is noted.
    """

    def __init__(self, root: Path, head: Head) -> None:
        self._root = root
        self._head = head
        self._reading = threading.Lock()
        self._failures = 0
        self._failure: Exception | None = None
        # What follows is changed under the head's lock only.
        self._parts: _ByQuery | None = None
        self._meanwhile: list[ResultPart] | None = None

    def add(self, results: tuple[ResultPart, ...]) -> None:
        """What the head's new batch brought."""
        with self._head.lock:
            if self._parts is not None:
                _add(self._parts, results)
            elif self._meanwhile is not None:
                self._meanwhile.extend(results)

    def of(self, query: str) -> list[ResultPart]:
        self.be_read()
        with self._head.lock:
            assert self._parts is not None
            return list(self._parts.get(query, ()))

    def known_after(self, query: str, batch: int) -> tuple[int, tuple[ResultPart, ...]] | None:
        """The first batch later than `batch` with answers, and these; else the newest batch and none.

        None while nothing is read.
        """
        with self._head.lock:
            if self._parts is None:
                return None
            parts = self._parts.get(query, [])
            lower = bisect_right(parts, batch, key=_batch_of)
            if lower == len(parts):
                return self._head.batch, ()
            found = _batch_of(parts[lower])
            return found, tuple(parts[lower : bisect_right(parts, found, lo=lower, key=_batch_of)])

    def be_read(self) -> None:
        """Wait for the manifests, or read them. Who waits for one that fails at it fails likewise.

        For hundreds of sinks may ask at once, and each would read all manifests up to the damaged one.
        """
        failures = self._failures
        with self._reading:
            if self._parts is not None:
                return
            if self._failures > failures and self._failure is not None:
                raise self._failure
            try:
                self._read()
            except Exception as failure:
                self._failures, self._failure = self._failures + 1, failure
                raise
            self._failure = None

    def _read(self) -> None:
        """All or none: whoever asks again after an error must not get what was read before it."""
        with self._head.lock:
            self._meanwhile = []
            upto = self._head.batch
        parts: _ByQuery = {}
        try:
            for manifest in read_manifests(self._root, upto):
                _add(parts, manifest.results)
            with self._head.lock:
                _add(parts, self._meanwhile)
                self._parts = parts
        finally:
            with self._head.lock:
                self._meanwhile = None


def _add(parts: _ByQuery, results: Iterable[ResultPart]) -> None:
    for result in results:
        parts.setdefault(result.query, []).append(result)


def _batch_of(file: ResultPart) -> int:
    return result_batch(file.path)
