"""How far each query's answers were delivered: one small file a query, replaced after every delivered batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dovetail.core.sealed_file import FileKind, files_in, read_sealed, write_sealed
from dovetail.store.layout import delivered_file

_MARK = FileKind(
    "delivery mark",
    "up to which batch a query's answers were delivered to its sink",
    'write it anew: {"query": ID, "batch": LAST}; a lower number delivers more batches again',
)


@dataclass(frozen=True)
class Delivered:
    """Everything up to `batch`; since `ended_batch`, if there is one, there is no sink."""

    batch: int
    ended_batch: int | None = None


class DeliveryMarks:
    def __init__(self, root: Path, *, syncs: bool = False) -> None:
        self._root = root
        self._syncs = syncs

    def read(self) -> dict[str, Delivered]:
        """By query id."""
        paths = files_in((self._root / delivered_file("")).parent, "*.json", _MARK)
        return dict(read_sealed(path, _MARK, _from_json) for path in paths)

    def write(self, query_id: str, batch: int, *, ended_batch: int | None = None) -> None:
        ended = {} if ended_batch is None else {"ended": ended_batch}
        path = self._root / delivered_file(query_id)
        write_sealed(path, {"query": query_id, "batch": batch, **ended}, syncs=self._syncs)

    def remove(self, query_id: str) -> None:
        (self._root / delivered_file(query_id)).unlink(missing_ok=True)


def _from_json(record: Mapping[str, Any]) -> tuple[str, Delivered]:
    ended = record.get("ended")
    return str(record["query"]), Delivered(int(record["batch"]), None if ended is None else int(ended))
