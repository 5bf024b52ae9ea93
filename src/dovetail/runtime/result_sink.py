"""Where results wait as references and become values: only here, in large pieces, whatever found them (A1).

Answers go to one Parquet file per query and task, rows of intermediates to a bucket of their store; both are named by
attempt, and only a manifest makes them real.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from dovetail.core.errors import EvaluationError
from dovetail.kernels.evaluate.evaluate import evaluate
from dovetail.plan.fill import filled_by
from dovetail.plan.probe_tree import Emit
from dovetail.query.output_names import unique_names
from dovetail.runtime.answer_files import AnswerFiles
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.probe.frame import Frame, FrameValues
from dovetail.runtime.probe.snapshot import StoreSnapshot
from dovetail.runtime.report import TaskReport
from dovetail.runtime.source.store_writer import StoreWriter
from dovetail.runtime.waiting_rows import WaitingRoom, WaitingRows
from dovetail.store.bucket_file import BucketMeta, times_of

MAX_WAITING_ROWS = 1_000_000


class ResultSink:
    """Takes results of all queries; `close` writes what still waits."""

    def __init__(
        self,
        task: BatchTask,
        first_split: int,
        snapshots: Mapping[str, StoreSnapshot],
        report: TaskReport,
        answers: AnswerFiles,
    ) -> None:
        self._task = task
        self._writer = StoreWriter(task, report)
        self._next_split = first_split
        self._snapshots = snapshots
        self._report = report
        self._answers = answers
        self._waiting = WaitingRoom()
        self._pieces: dict[str, list[pa.RecordBatch]] = {}

    def add(self, emit: Emit, frame: Frame) -> None:
        enough = self._waiting.add(emit, frame, MAX_WAITING_ROWS)
        if enough is None:
            return
        self._materialize(enough)
        if emit.into is None:
            self._write(emit.query)
        else:
            self._store(emit.into, emit.query)

    @property
    def stored(self) -> list[BucketMeta]:
        """The buckets of intermediates."""
        return self._writer.written

    def close(self) -> None:
        rest = self._waiting.empty()
        for waiting in rest:
            self._materialize(waiting)
        stores = {waiting.emit.query: waiting.emit.into for waiting in rest if waiting.emit.into}
        for query, store in stores.items():
            self._store(store, query)
        for query in list(self._pieces):
            self._write(query)

    def _materialize(self, waiting: WaitingRows) -> None:
        emit = waiting.emit
        if emit.query in self._report.void_queries:
            return
        values = FrameValues(waiting.frame, self._snapshots)
        try:
            arrays = [
                evaluate(column.expression, values.column, len(values), timezone=self._task.timezone)
                for column in emit.output
            ]
        except EvaluationError as error:
            self._report.fail({emit.query}, error)
            return
        names = unique_names([column.name for column in emit.output])
        self._pieces.setdefault(emit.query, []).append(pa.RecordBatch.from_arrays(arrays, names))

    def _store(self, store_id: str, query: str) -> None:
        pieces = self._pieces.pop(query, [])
        if not pieces:
            return
        table = pa.Table.from_batches(pieces).combine_chunks()
        columns = {name: table.column(name).chunk(0) for name in table.column_names}
        store = self._task.plan.store(store_id)
        times = times_of(columns[store.event_time]) if store.event_time is not None else None
        self._writer.write(store, columns, times, self._next_split, is_counted=query != filled_by(store_id))
        self._next_split += 1

    def _write(self, query: str) -> None:
        pieces = self._pieces.pop(query, [])
        if pieces:
            self._answers.write(query, pieces)
