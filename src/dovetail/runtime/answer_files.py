"""The answers of one task: a Parquet file for each query, named by attempt; only a manifest makes it real."""

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
from dovetail.store.layout import result_file
from dovetail.store.manifest import ResultFile


class AnswerFiles:
    def __init__(self, task: BatchTask, partition: int) -> None:
        self._root = Path(task.root)
        self._batch = task.batch
        self._partition = partition
        self._attempt = uuid4().hex[:12]
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._files: dict[str, ChecksumFile] = {}
        self._rows: dict[str, int] = {}

    def write(self, query: str, pieces: list[pa.RecordBatch]) -> None:
        if query not in self._writers:
            path = self._root / self._path(query)
            private_folder(path.parent)
            # Answers are written once and mostly read once: spend no time on dictionaries and statistics.
            file = self._files[query] = ChecksumFile(path)
            self._writers[query] = pq.ParquetWriter(
                pa.PythonFile(file, mode="w"),
                pieces[0].schema,
                compression="none",
                use_dictionary=False,
                write_statistics=False,
            )
        self._writers[query].write_table(pa.Table.from_batches(pieces))
        self._rows[query] = self._rows.get(query, 0) + sum(piece.num_rows for piece in pieces)

    def close(self, report: TaskReport) -> None:
        """Tell of the files; one that cannot be finished is its query's failure."""
        for query, writer in self._writers.items():
            path, file = self._path(query), self._files[query]
            with report.charging({query}):
                with file:
                    writer.close()
                sync_later(self._root / path)
                found = ResultFile(query, path, self._rows.get(query, 0), file.size_bytes, file.checksum)
                report.results.append(found)

    def _path(self, query: str) -> str:
        return result_file(query, self._batch, self._partition, self._attempt)
