"""How far each query's answers were delivered: one small file a query, replaced after every delivered batch."""

from __future__ import annotations

from pathlib import Path

from dovetail.core.sealed_file import FileKind, files_in, read_sealed, write_sealed
from dovetail.store.layout import delivered_file

_MARK = FileKind(
    "delivery mark",
    "up to which batch a query's answers were delivered to its sink",
    'write it anew: {"query": ID, "batch": LAST}; a lower number delivers more batches again',
)


class DeliveryMarks:
    def __init__(self, root: Path, *, syncs: bool = False) -> None:
        self._root = root
        self._syncs = syncs

    def read(self) -> dict[str, int]:
        """By query id, the batch up to which all answers are delivered."""
        marks = {}
        for path in files_in((self._root / delivered_file("")).parent, "*.json", _MARK):
            query, batch = read_sealed(path, _MARK, lambda record: (str(record["query"]), int(record["batch"])))
            marks[query] = batch
        return marks

    def write(self, query_id: str, batch: int) -> None:
        path = self._root / delivered_file(query_id)
        write_sealed(path, {"query": query_id, "batch": batch}, syncs=self._syncs)

    def remove(self, query_id: str) -> None:
        (self._root / delivered_file(query_id)).unlink(missing_ok=True)
