"""Where results wait as references and become values: only here, in large pieces, whatever found them (A1).

Answers go to the files of the task, rows of intermediates to a bucket of their store; both are named by
attempt, and only a manifest makes them real.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from dovetail.core.errors import ColumnTooLarge, charged
from dovetail.kernels.evaluate.evaluate import evaluate
from dovetail.kernels.evaluate.sizes import WORK_BYTES
from dovetail.plan.fill import filled_by
from dovetail.plan.probe_tree import Emit
from dovetail.plan.query_limits import Found
from dovetail.query.join_query import OutputColumn
from dovetail.query.output_names import unique_names
from dovetail.runtime.answer_files import AnswerFiles
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.bucket_files import BucketFiles
from dovetail.runtime.probe.decide_pairs import FEW_ROWS
from dovetail.runtime.probe.emit_order import Alike
from dovetail.runtime.probe.frame import Frame, FrameValues, slice_of, smaller_frames
from dovetail.runtime.probe.snapshot import StoreSnapshot
from dovetail.runtime.report import TaskReport
from dovetail.runtime.source.store_writer import StoreWriter
from dovetail.runtime.stopwatch import Stopwatch
from dovetail.runtime.waiting_rows import AlikeRows, WaitingRoom, WaitingRows
from dovetail.store.bucket_file import BucketMeta, times_of

MAX_WAITING_ROWS = 1_000_000
ROWS_A_PIECE = 1 << 16
MAX_ALIKE_VALUES = 1 << 19
"""In all columns: far fewer bytes than a piece may have, unless they are long texts."""
BYTES_AT_ONCE = 64 << 20
BYTES_OF_A_PIECE, BYTES_OF_A_ROW = WORK_BYTES, 256 << 20
"""Of all columns: so much is made before anybody looks at the time again."""


class ResultSink:
    """Takes results of all queries; `close` writes what still waits."""

    def __init__(
        self,
        task: BatchTask,
        first_split: int,
        snapshots: Mapping[str, StoreSnapshot],
        report: TaskReport,
        answers: AnswerFiles,
        buckets: BucketFiles,
    ) -> None:
        self._task = task
        self._writer = StoreWriter(task, report, buckets)
        self._next_split = first_split
        self._snapshots = snapshots
        self._report = report
        self._answers = answers
        self._waiting = WaitingRoom()
        self._alike: dict[Alike, AlikeRows] = {}
        self._pieces: dict[str, list[pa.RecordBatch]] = {}
        self._piece_bytes: dict[str, int] = {}

    def add(self, emit: Emit, frame: Frame) -> None:
        enough = self._waiting.add(emit, frame, MAX_WAITING_ROWS)
        if enough is None:
            return
        self._materialize(enough)
        if emit.into is None:
            self._write(emit.query)
        else:
            self._store(emit.into, emit.query)

    def add_alike(self, alike: Alike, queries: list[str], sizes: list[int], frame: Frame) -> None:
        """Answers of several queries, one query's after the other's, each so many rows."""
        waiting = self._alike.setdefault(alike, AlikeRows(alike.output))
        waiting.add(queries, sizes, frame)
        if waiting.rows * len(alike.output) >= MAX_ALIKE_VALUES:
            self._gather_alike(self._alike.pop(alike))

    @property
    def stored(self) -> list[BucketMeta]:
        """The buckets of intermediates."""
        return self._writer.written

    def close(self) -> None:
        rest = self._waiting.empty()
        alike, others = _alike(rest)
        for few in (*self._alike.values(), *alike):
            self._gather_alike(few)
        for waiting in others:
            self._materialize(waiting)
        stores = {waiting.emit.query: waiting.emit.into for waiting in rest if waiting.emit.into}
        for query, store in stores.items():
            self._store(store, query)
        for query in list(self._pieces):
            self._write(query)

    def _materialize(self, waiting: WaitingRows) -> None:
        """So many rows at a time that a query which takes too long is stopped between them."""
        query = waiting.emit.query
        with self._report.charging({query}):
            frame = waiting.frame
            for lower in range(0, len(frame), ROWS_A_PIECE):
                self._gather(waiting.emit, slice_of(frame, lower, ROWS_A_PIECE))

    def _gather_alike(self, few: AlikeRows) -> None:
        """The same columns of the same stores for several queries, made once; apart only if that fails.

        With hundreds of queries most answers are a few rows, and most queries ask for what some others do.
        """
        frame, watch, begin = few.frame, Stopwatch(), 0
        try:
            whole = _named(few.output, self._values(few.output, frame))
        except Exception as error:  # noqa: BLE001 - made apart, it fails for who asks for it
            self._gather_apart(few, frame, charged(error))
            return
        row_bytes = _bytes_of_every_row(whole)
        row_ms = watch.lap() * 1e3 / max(whole.num_rows, 1)
        for query, rows in zip(few.queries, few.sizes, strict=True):
            piece = whole.slice(begin, rows)
            size_bytes = piece.nbytes if row_bytes is None else row_bytes * rows
            if query not in self._report.void_queries:
                with self._report.charging({query}):
                    self._keep(query, piece, Found(result_bytes=size_bytes, ms=row_ms * rows))
            begin += rows

    def _gather_apart(self, few: AlikeRows, frame: Frame, error: Exception) -> None:
        begin = 0
        for query, rows in zip(few.queries, few.sizes, strict=True):
            parts: Iterable[Frame] = (slice_of(frame, begin, rows),)
            if isinstance(error, ColumnTooLarge) and rows == len(frame) > 1:
                # What is too large for one query is not tried again whole.
                parts = smaller_frames(frame, error)
            with self._report.charging({query}):
                for part in parts:
                    self._gather(Emit(query, 0, few.output), part)
            begin += rows

    def _gather(self, emit: Emit, frame: Frame) -> None:
        """The values of these rows; of fewer at a time if they would be too large together."""
        if emit.query in self._report.void_queries:
            return
        try:
            with self._report.working_for((emit.query,), self._task.limits):
                arrays = self._values(emit.output, frame)
        except ColumnTooLarge as error:
            for part in smaller_frames(frame, error):
                self._gather(emit, part)
            return
        piece = _named(emit.output, arrays)
        self._keep(emit.query, piece, Found(result_bytes=piece.nbytes if emit.is_answer else 0))
        if emit.into is None and piece.nbytes > BYTES_AT_ONCE:
            self._write(emit.query)

    def _keep(self, query: str, piece: pa.RecordBatch, found: Found) -> None:
        if self._report.count(query, found, self._task.limits):
            self._pieces.setdefault(query, []).append(piece)
            self._piece_bytes[query] = self._piece_bytes.get(query, 0) + found.result_bytes

    def _values(self, output: tuple[OutputColumn, ...], frame: Frame) -> list[pa.Array]:
        """The output columns; raises as soon as all of them together will take too much, if they are like the first."""
        values, arrays, taken = FrameValues(frame, self._snapshots), [], 0
        for column in output:
            arrays.append(
                evaluate(
                    column.expression,
                    values.column,
                    len(values),
                    timezone=self._task.timezone,
                    most_bytes=WORK_BYTES,
                )
            )
            taken += arrays[-1].nbytes
            needed = taken * len(output) // len(arrays)
            if taken > BYTES_OF_A_ROW or (len(frame) > 1 and needed > BYTES_OF_A_PIECE):
                raise ColumnTooLarge(
                    f"{len(frame):,} rows of the answer have more than {taken:,} bytes",
                    hint="select fewer or shorter columns",
                    needed_bytes=needed,
                )
        return arrays

    def _store(self, store_id: str, query: str) -> None:
        with self._report.charging({query}):
            self._store_pieces(store_id, query, self._pieces.pop(query, []))

    def _store_pieces(self, store_id: str, query: str, pieces: list[pa.RecordBatch]) -> None:
        if not pieces:
            return
        table = pa.Table.from_batches(pieces).combine_chunks()
        columns = {name: table.column(name).chunk(0) for name in table.column_names}
        store = self._task.plan.store(store_id)
        times = times_of(columns[store.event_time]) if store.event_time is not None else None
        self._writer.write(store, columns, times, self._next_split, is_counted=query != filled_by(store_id))
        self._next_split += 1

    def _write(self, query: str) -> None:
        pieces, size_bytes = self._pieces.pop(query, []), self._piece_bytes.pop(query, 0)
        if pieces and query not in self._report.void_queries:
            with self._report.charging({query}):
                self._answers.write(query, pieces, size_bytes)


def _named(output: tuple[OutputColumn, ...], arrays: list[pa.Array]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(arrays, unique_names([column.name for column in output]))


def _bytes_of_every_row(batch: pa.RecordBatch) -> int | None:
    """What each takes, if all take the same; else None."""
    sizes = [field.type.bit_width // 8 if pa.types.is_primitive(field.type) else 0 for field in batch.schema]
    return sum(sizes) if all(sizes) else None


def _alike(waiting: Iterable[WaitingRows]) -> tuple[list[AlikeRows], list[WaitingRows]]:
    """Few answers of the same columns, called the same, of the same stores together; and all others."""
    found: dict[object, AlikeRows] = {}
    others: list[WaitingRows] = []
    for each in waiting:
        if each.emit.is_answer and each.rows <= FEW_ROWS:
            asked = (each.frames[0].stores, each.emit.output)
            found.setdefault(asked, AlikeRows(each.emit.output)).add([each.emit.query], [each.rows], each.frame)
        else:
            others.append(each)
    return list(found.values()), others
