"""The source operator: rows of a batch become buckets (A1). One call per source task.

For every store of every stream: put bad rows aside, drop late rows (counted), expand windows, decide all selections at
once (A4), drop rows that nobody wants, index the rest, write one file. Each tuple is stored once, here (B1); what later
travels between tasks are references to it (A2). Or, where the plan ships rows, send the rest to the partitions
that keep it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.kernels.evaluate.work_limit import work_limit
from dovetail.kernels.expand_windows import expand_windows
from dovetail.kernels.ready_kernels import ready_kernels
from dovetail.plan.store_plan import StorePlan
from dovetail.query.join_query import WINDOW_END, WINDOW_START
from dovetail.query.stream import Stream
from dovetail.runtime.batch_task import BATCH, BatchTask
from dovetail.runtime.bucket_files import BucketFiles
from dovetail.runtime.message import Kind, Message, void_messages
from dovetail.runtime.report import STATISTICS, StreamCount, TaskReport, newest_times
from dovetail.runtime.source.bad_rows import BadRowSieve
from dovetail.runtime.source.retried_rows import retried_rows
from dovetail.runtime.source.sample_key_groups import sample_key_groups
from dovetail.runtime.source.ship_rows import RowShipper
from dovetail.runtime.source.store_writer import PIECES_PER_SPLIT, StoreWriter
from dovetail.runtime.source.wanted_rows import RowSelector
from dovetail.store.bucket_file import BucketMeta, times_of

StreamRows = tuple[str, pa.RecordBatch]
"""Rows of one stream, columns by their own names; only columns that the plan wants are there."""


def run_source(task: BatchTask, split: int, rows: Iterable[StreamRows]) -> Iterator[Message]:
    """However many rows come, only about `piece_bytes` wait in memory: then they become buckets of their own."""
    with work_limit(task.limits.longest_ms):
        yield from _run_source(task, split, rows)


def _run_source(task: BatchTask, split: int, rows: Iterable[StreamRows]) -> Iterator[Message]:
    ready_kernels()
    source = _Source(task, split)
    for name, batches in retried_rows(task, split, source.report):
        yield from source.take({name: batches})
    waiting: dict[str, list[pa.RecordBatch]] = {}
    waiting_bytes = 0
    began = time.perf_counter()
    for name, batch in rows:
        if batch.num_rows:
            waiting.setdefault(name, []).append(batch)
            waiting_bytes += batch.nbytes
        if waiting_bytes >= task.piece_bytes:
            yield from source.take(waiting)
            waiting, waiting_bytes = {}, 0
    yield from source.take(waiting)
    taken_s = source.report.seconds_by_part["source"]
    source.report.seconds_by_part["receive"] = time.perf_counter() - began - taken_s
    for meta in source.close():
        payload = json.dumps(meta.to_json()).encode()
        for partition in range(task.plan.placement.partition_count):
            yield Message(partition, Kind.BUCKET, payload)
    if task.plan.lone_rows or any(group.pane is not None for group in task.plan.groups):
        payload = json.dumps(newest_times(source.report.streams)).encode()
        for partition in range(task.plan.placement.partition_count):
            yield Message(partition, Kind.TIMES, payload)
    yield from void_messages(source.report.void_queries, task.plan.placement.partition_count)
    yield Message(0, Kind.REPORT, source.report.to_bytes())


class _Source:
    def __init__(self, task: BatchTask, split: int) -> None:
        self._task = task
        self._first_split = split * PIECES_PER_SPLIT
        self._pieces = 0
        self._late_before_us = dict(task.late_before_us)
        self.report = TaskReport()
        self._sieve = BadRowSieve(task, self.report)
        self._files = BucketFiles(Path(task.root), task.batch)
        self._writer = StoreWriter(task, self.report, self._files)
        self._selector = RowSelector(task, self.report)
        self._shipper = RowShipper(task, self._selector)

    def close(self) -> list[BucketMeta]:
        self._files.close()
        return self._writer.written

    def take(self, batches_by_stream: dict[str, list[pa.RecordBatch]]) -> list[Message]:
        """Keep the rows, or else what must be sent of them."""
        sent: list[Message] = []
        with self.report.timed("source"):
            for stream in self._task.streams:
                if stream.name in batches_by_stream:
                    sent += self._take_stream(stream, batches_by_stream[stream.name])
        self._pieces += 1
        return sent

    def _take_stream(self, stream: Stream, batches: list[pa.RecordBatch]) -> Iterator[Message]:
        table = pa.Table.from_batches(batches)
        count = StreamCount(stream.name, table.num_rows, 0, None)
        self.report.streams.append(count)
        columns = {name: _one_chunk(table.column(name)) for name in table.column_names}
        times = times_of(columns[stream.event_time]) if stream.event_time in columns else None
        columns, times, count.bad_rows = self._sieve.sift(stream, columns, times)
        if times is not None and len(times):
            count.max_time_us = _max_time(times)
            columns, times = self._drop_late(stream, columns, times, count)
        for store in self._task.plan.stores:
            if store.stream == stream.name:
                yield from self._store(store, columns, times)

    def _store(
        self, store: StorePlan, columns: dict[str, pa.Array], times: npt.NDArray[np.int64] | None
    ) -> Iterator[Message]:
        if store.hop_window is not None:
            columns, times = _expanded(store, columns)
        split = self._first_split + self._pieces
        if self._task.plan.ships(store):
            rows = self._selector.select(store, columns, times)
            with self.report.timed(STATISTICS):
                self.report.key_groups += sample_key_groups(self._task, self._selector, store, rows)
            yield from self._shipper.ship(store, rows, split)
        else:
            self._writer.write(store, columns, times, split)

    def _drop_late(
        self, stream: Stream, columns: dict[str, pa.Array], times: npt.NDArray[np.int64], count: StreamCount
    ) -> tuple[dict[str, pa.Array], npt.NDArray[np.int64]]:
        late_before_us = self._bound_of(stream, columns)
        if late_before_us is None:
            return columns, times
        # A NULL time is below every bound but is not late: queries without time bounds may still join it.
        in_time = (times >= late_before_us) | (times == np.iinfo(np.int64).min)
        count.late_rows = len(times) - int(in_time.sum())
        if not count.late_rows:
            return columns, times
        keep = pa.array(in_time)
        return {name: column.filter(keep) for name, column in columns.items()}, times[in_time]

    def _bound_of(self, stream: Stream, columns: dict[str, pa.Array]) -> npt.NDArray[np.int64] | int | None:
        """The time below which rows are late: one for all, or for rows of the past that of each row's batch."""
        if self._task.late_before_us_by_batch is None:
            return self._late_before_us.get(stream.name)
        batches = columns[BATCH].to_numpy(zero_copy_only=False)
        bounds = np.full(len(batches), np.iinfo(np.int64).min)
        for batch, name, late_before_us in self._task.late_before_us_by_batch:
            if name == stream.name:
                bounds[batches == batch] = late_before_us
        return bounds


def _expanded(
    store: StorePlan, columns: dict[str, pa.Array]
) -> tuple[dict[str, pa.Array], npt.NDArray[np.int64] | None]:
    window = store.hop_window
    if window is None:
        raise ValueError(f"store {store.id} has no window")
    time_column = columns[window.time_column]
    rows = expand_windows(times_of(time_column), window.size_us, window.slide_us, window.offset_us)
    take = pa.array(rows.row_idx)
    expanded = {name: column.take(take) for name, column in columns.items()}
    expanded[WINDOW_START] = pa.array(rows.start_us).view(time_column.type)
    expanded[WINDOW_END] = pa.array(rows.end_us).view(time_column.type)
    times = times_of(expanded[store.event_time]) if store.event_time in expanded else None
    return expanded, times


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _max_time(times: npt.NDArray[np.int64]) -> int | None:
    largest = int(times.max())
    return None if largest == np.iinfo(np.int64).min else largest
