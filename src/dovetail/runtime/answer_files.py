"""The answers of one task: one file for all queries, in which each has a range of bytes; only a manifest makes it real.

Hundreds of queries answer a few rows each in a small batch: a file for each would cost more than all the joins. A query
with many answers gets a file of its own, in Parquet, which Spark and other tools read as it is. Both are named by
attempt.
"""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from dovetail.core.private_files import private_folder
from dovetail.core.sync import sync_later
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.report import TaskReport
from dovetail.store.checksum import ChecksumFile
from dovetail.store.layout import result_file, shared_answers_file
from dovetail.store.manifest import ResultPart

END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""What Arrow's format ends a stream with."""


class AnswerFiles:
    def __init__(self, task: BatchTask, partition: int) -> None:
        self._root = Path(task.root)
        self._attempt = uuid4().hex[:12]
        self._shared = _SharedFile(self._root, shared_answers_file(task.batch, partition, self._attempt))
        self._own: dict[str, _OwnFile] = {}
        self._own_file_bytes = task.own_file_bytes
        self._batch = task.batch
        self._partition = partition

    def write(self, query: str, pieces: list[pa.RecordBatch], size_bytes: int) -> None:
        """`size_bytes` are those of the pieces in memory."""
        if query not in self._own:
            if size_bytes < self._own_file_bytes:
                self._shared.append(query, pieces)
                return
            path = result_file(query, self._batch, self._partition, self._attempt)
            self._own[query] = _OwnFile(self._root, path, pieces[0].schema)
        self._own[query].append(pieces)

    def close(self, report: TaskReport) -> None:
        """Tell of the files; one of its own that cannot be finished is its query's failure."""
        report.results += self._shared.close()
        for query, file in self._own.items():
            with report.charging({query}):
                report.results.append(file.close(query))


class _SharedFile:
    """Ranges of bytes, each an Arrow IPC stream with the answers of one query. Made with the first of them."""

    def __init__(self, root: Path, path: str) -> None:
        self._root = root
        self._path = path
        self._file: ChecksumFile | None = None
        self._parts: list[ResultPart] = []
        self._heads: dict[pa.Schema, pa.Buffer] = {}

    def append(self, query: str, pieces: list[pa.RecordBatch]) -> None:
        content = b"".join((self._head(pieces[0].schema), *(piece.serialize() for piece in pieces), END_OF_STREAM))
        if self._file is None:
            path = self._root / self._path
            private_folder(path.parent)
            self._file = ChecksumFile(path)
        offset, rows = self._file.begin_range(), sum(piece.num_rows for piece in pieces)
        self._file.write(content)
        self._parts.append(ResultPart(query, self._path, rows, len(content), self._file.checksum, offset))

    def _head(self, schema: pa.Schema) -> pa.Buffer:
        """The message that begins a stream; many queries have the same."""
        found = self._heads.get(schema)
        if found is None:
            found = self._heads[schema] = schema.serialize()
        return found

    def close(self) -> list[ResultPart]:
        if self._file is not None:
            self._file.finish()
            sync_later(self._root / self._path)
        return self._parts


class _OwnFile:
    """Answers are written once and mostly read once: no time is spent on dictionaries and statistics."""

    def __init__(self, root: Path, path: str, schema: pa.Schema) -> None:
        self._root = root
        self._path = path
        private_folder((root / path).parent)
        self._file = ChecksumFile(root / path)
        self._rows = 0
        self._writer = pq.ParquetWriter(
            pa.PythonFile(self._file, mode="w"),
            schema,
            compression="none",
            use_dictionary=False,
            write_statistics=False,
        )

    def append(self, pieces: list[pa.RecordBatch]) -> None:
        self._writer.write_table(pa.Table.from_batches(pieces))
        self._rows += sum(piece.num_rows for piece in pieces)

    def close(self, query: str) -> ResultPart:
        with self._file:
            self._writer.close()
        sync_later(self._root / self._path)
        return ResultPart(query, self._path, self._rows, self._file.size_bytes, self._file.checksum)
