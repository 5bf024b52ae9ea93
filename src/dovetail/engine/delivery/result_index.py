"""Which committed answers a query has, and where they lie."""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path

from dovetail.engine.state import NO_BATCH
from dovetail.store.layout import result_batch
from dovetail.store.manifest import ResultPart, read_manifests


class ResultIndex:
    """Committed answers by query; read from the manifests once somebody asks, then kept up.

    Nothing is read before: there is a manifest for every batch that ever was, and a restart must not wait for them.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._parts: dict[str, list[ResultPart]] = {}
        self._newest_batch: int | None = None

    def add(self, batch: int, results: tuple[ResultPart, ...]) -> None:
        """Whoever asks between a commit and its addition has found the batch on disk already."""
        if self._newest_batch is not None and batch > self._newest_batch:
            self._add(batch, results)

    def of(self, query: str) -> list[ResultPart]:
        if self._newest_batch is None:
            # All or none: whoever asks again after an error must not get what was read before it.
            manifests = list(read_manifests(self._root))
            self._newest_batch = NO_BATCH
            for manifest in manifests:
                self._add(manifest.batch, manifest.results)
        return list(self._parts.get(query, []))

    def after(self, query: str, batch: int) -> tuple[int, tuple[ResultPart, ...]] | None:
        parts = self.of(query)
        lower = bisect_right(parts, batch, key=_batch_of)
        if lower == len(parts):
            return None
        found = _batch_of(parts[lower])
        return found, tuple(parts[lower : bisect_right(parts, found, lo=lower, key=_batch_of)])

    def _add(self, batch: int, results: tuple[ResultPart, ...]) -> None:
        for result in results:
            self._parts.setdefault(result.query, []).append(result)
        self._newest_batch = batch


def _batch_of(file: ResultPart) -> int:
    return result_batch(file.path)
