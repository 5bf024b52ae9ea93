"""Answers of one task: one Parquet file per query, named by attempt; only a manifest makes it real."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from dovetail.store.layout import result_file
from dovetail.store.manifest import ResultFile

MAX_BUFFERED_ROWS = 1_000_000


class ResultWriter:
    """Collects the pieces of every query and writes them in large row groups."""

    def __init__(self, root: Path, batch: int, partition: int) -> None:
        self._root = root
        self._batch = batch
        self._partition = partition
        self._attempt = uuid4().hex[:12]
        self._pieces: dict[str, list[pa.RecordBatch]] = {}
        self._buffered_rows: dict[str, int] = {}
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._rows: dict[str, int] = {}

    def add(self, query: str, piece: pa.RecordBatch) -> None:
        self._pieces.setdefault(query, []).append(piece)
        self._rows[query] = self._rows.get(query, 0) + piece.num_rows
        self._buffered_rows[query] = self._buffered_rows.get(query, 0) + piece.num_rows
        if self._buffered_rows[query] >= MAX_BUFFERED_ROWS:
            self._flush(query)

    def close(self) -> list[ResultFile]:
        files = []
        for query, rows in self._rows.items():
            self._flush(query)
            self._writers[query].close()
            path = self._path(query)
            files.append(ResultFile(query, path, rows, (self._root / path).stat().st_size))
        return files

    def _flush(self, query: str) -> None:
        pieces = self._pieces.pop(query, [])
        self._buffered_rows[query] = 0
        if not pieces:
            return
        if query not in self._writers:
            path = self._root / self._path(query)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._writers[query] = pq.ParquetWriter(
                path, pieces[0].schema, compression="lz4", use_dictionary=False, write_statistics=False
            )
        self._writers[query].write_table(pa.Table.from_batches(pieces))

    def _path(self, query: str) -> str:
        return result_file(query, self._batch, self._partition, self._attempt)


def unique_names(names: list[str]) -> list[str]:
    """Column names for a file, where each must differ: a repeated one gets a number.

    >>> unique_names(["id", "ts", "id"])
    ['id', 'ts', 'id_2']
    """
    taken: set[str] = set()
    unique = []
    for name in names:
        candidate, number = name, 1
        while candidate.lower() in taken:
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate.lower())
        unique.append(candidate)
    return unique
