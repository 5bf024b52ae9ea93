"""How far each query's answers were delivered: one small file a query, replaced after every delivered batch."""

from __future__ import annotations

import json
from pathlib import Path

from dovetail.core.errors import StoreError
from dovetail.core.private_files import private_folder, write_private
from dovetail.store.layout import delivered_file


class DeliveryMarks:
    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self) -> dict[str, int]:
        """By query id, the batch up to which all answers are delivered."""
        marks = {}
        for path in sorted((self._root / delivered_file("")).parent.glob("*.json")):
            try:
                record = json.loads(path.read_text())
                marks[str(record["query"])] = int(record["batch"])
            except (ValueError, KeyError, TypeError):
                raise StoreError(
                    f"delivery mark {path.name} cannot be read",
                    where=str(path),
                    hint='write it anew: {"query": ID, "batch": LAST}; a lower number delivers more batches again',
                ) from None
        return marks

    def write(self, query_id: str, batch: int) -> None:
        path = self._root / delivered_file(query_id)
        private_folder(path.parent)
        draft = path.with_suffix(".draft")
        write_private(draft, json.dumps({"query": query_id, "batch": batch}))
        draft.replace(path)

    def remove(self, query_id: str) -> None:
        (self._root / delivered_file(query_id)).unlink(missing_ok=True)
