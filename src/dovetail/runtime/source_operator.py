"""The source operator: rows of a batch become buckets (A1). One call per source task.

For every store of every stream: drop late rows (counted), expand windows, decide all selections at once (A4),
drop rows that nobody wants, index the rest, write one file. Each tuple is stored once, here (B1); what later
travels between tasks are references to it (A2).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.core.errors import EvaluationError
from dovetail.kernels.evaluate import evaluate_mask
from dovetail.kernels.expand_windows import expand_windows
from dovetail.kernels.select_rows import Mask, any_of, pack_masks
from dovetail.plan.affected_queries import queries_of_index, queries_of_selection, selections_of_queries
from dovetail.plan.store_plan import IndexPlan, StorePlan
from dovetail.query.expression import TRUE
from dovetail.query.join_query import WINDOW_END, WINDOW_START
from dovetail.query.stream import Stream
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.build_index import build_index
from dovetail.runtime.message import Kind, Message
from dovetail.runtime.report import StreamCount, TaskReport
from dovetail.store.bucket_file import BucketContent, BucketIndex, BucketMeta, times_of, write_bucket
from dovetail.store.layout import bucket_file

PIECES_PER_SPLIT = 1 << 20
StreamRows = tuple[str, pa.RecordBatch]
"""Rows of one stream, columns by their own names; only columns that the plan wants are there."""


def run_source(task: BatchTask, split: int, rows: Iterable[StreamRows]) -> Iterator[Message]:
    """However many rows come, only about `piece_bytes` wait in memory: then they become buckets of their own."""
    source = _Source(task, split)
    waiting: dict[str, list[pa.RecordBatch]] = {}
    waiting_bytes = 0
    began = time.perf_counter()
    for name, batch in rows:
        if batch.num_rows:
            waiting.setdefault(name, []).append(batch)
            waiting_bytes += batch.nbytes
        if waiting_bytes >= task.piece_bytes:
            source.take(waiting)
            waiting, waiting_bytes = {}, 0
    source.take(waiting)
    taken_s = source.report.seconds_by_part["source"]
    source.report.seconds_by_part["receive"] = time.perf_counter() - began - taken_s
    for meta in source.written:
        payload = json.dumps(meta.to_json()).encode()
        for partition in range(task.plan.placement.partition_count):
            yield Message(partition, Kind.BUCKET, payload)
    yield Message(0, Kind.REPORT, source.report.to_bytes())


class _Source:
    def __init__(self, task: BatchTask, split: int) -> None:
        self._task = task
        self._first_split = split * PIECES_PER_SPLIT
        self._pieces = 0
        self._late_before_us = dict(task.late_before_us)
        self.written: list[BucketMeta] = []
        self.report = TaskReport()

    def take(self, batches_by_stream: dict[str, list[pa.RecordBatch]]) -> None:
        began = time.perf_counter()
        for stream in self._task.streams:
            if stream.name in batches_by_stream:
                self._take_stream(stream, batches_by_stream[stream.name])
        self._pieces += 1
        seconds = self.report.seconds_by_part
        seconds["source"] = seconds.get("source", 0.0) + time.perf_counter() - began

    def _take_stream(self, stream: Stream, batches: list[pa.RecordBatch]) -> None:
        table = pa.Table.from_batches(batches)
        count = StreamCount(stream.name, table.num_rows, 0, None)
        self.report.streams.append(count)
        columns = {name: _one_chunk(table.column(name)) for name in table.column_names}
        times = times_of(columns[stream.event_time]) if stream.event_time in columns else None
        if times is not None and len(times):
            count.max_time_us = _max_time(times)
            columns, times = self._drop_late(stream, columns, times, count)
        for store in self._task.plan.stores:
            if store.stream == stream.name:
                self._store(store, columns, times)

    def _drop_late(
        self, stream: Stream, columns: dict[str, pa.Array], times: npt.NDArray[np.int64], count: StreamCount
    ) -> tuple[dict[str, pa.Array], npt.NDArray[np.int64]]:
        late_before_us = self._late_before_us.get(stream.name)
        if late_before_us is None:
            return columns, times
        # A NULL time is below every bound but is not late: queries without time bounds may still join it.
        in_time = (times >= late_before_us) | (times == np.iinfo(np.int64).min)
        count.late_rows = len(times) - int(in_time.sum())
        if not count.late_rows:
            return columns, times
        keep = pa.array(in_time)
        return {name: column.filter(keep) for name, column in columns.items()}, times[in_time]

    def _store(self, store: StorePlan, columns: dict[str, pa.Array], times: npt.NDArray[np.int64] | None) -> None:
        if store.hop_window is not None:
            columns, times = _expanded(store, columns)
        length = len(next(iter(columns.values())))
        masks = self._selection_masks(store, columns, length)
        if not store.keeps_all:
            wanted = any_of(list(masks.values()), length)
            kept = int(wanted.sum())
            if kept < length:
                keep = pa.array(wanted)
                columns = {name: column.filter(keep) for name, column in columns.items()}
                masks = {name: mask[wanted] for name, mask in masks.items()}
                times = times[wanted] if times is not None else None
                length = kept
        if length == 0:
            return
        content = BucketContent(
            columns={name: columns[name] for name in store.columns},
            selection_words=pack_masks(list(masks.values()), length),
            indexes=self._indexes(store, columns, masks, length),
            times=times,
            rows=length,
        )
        self.written.append(self._write(store, content, tuple(masks)))

    def _selection_masks(self, store: StorePlan, columns: dict[str, pa.Array], length: int) -> dict[str, Mask]:
        """By selection; one that fails is left out, so that nobody takes its rows for refused ones later."""
        masks = {}
        for selection in store.tested_selections:
            try:
                masks[str(selection)] = evaluate_mask(
                    selection, lambda column: columns[column.name], length, timezone=self._task.timezone
                )
            except EvaluationError as error:
                self.report.fail(queries_of_selection(self._task.plan, store.id, selection), error)
        return masks

    def _indexes(
        self, store: StorePlan, columns: dict[str, pa.Array], masks: dict[str, Mask], length: int
    ) -> dict[str, BucketIndex]:
        indexes = {}
        for index in store.indexes:
            try:
                indexes[index.id] = build_index(index, lambda c: columns[c.name], length, self._task.timezone)
            except EvaluationError:
                guarded = self._guarded_index(store, index, columns, masks)
                if guarded is not None:
                    indexes[index.id] = guarded
        return indexes

    def _guarded_index(
        self, store: StorePlan, index: IndexPlan, columns: dict[str, pa.Array], masks: dict[str, Mask]
    ) -> BucketIndex | None:
        """Only the rows that some query with this key wants: its selection may guard the key from failing."""
        queries = queries_of_index(self._task.plan, store.id, index)
        selections = selections_of_queries(self._task.plan, store.id, queries)
        guards = [masks[str(selection)] for selection in selections if str(selection) in masks]
        length = len(next(iter(columns.values())))
        wanted = np.ones(length, np.bool_) if TRUE in selections else any_of(guards, length)
        kept = {name: column.filter(pa.array(wanted)) for name, column in columns.items()}
        try:
            found = build_index(index, lambda c: kept[c.name], int(wanted.sum()), self._task.timezone)
        except EvaluationError as error:
            self.report.fail(queries, error)
            return None
        return BucketIndex(found.codes, np.flatnonzero(wanted)[found.rows].astype(np.uint32))

    def _write(self, store: StorePlan, content: BucketContent, selections: tuple[str, ...]) -> BucketMeta:
        batch, attempt = self._task.batch, uuid4().hex[:12]
        split = self._first_split + self._pieces
        return write_bucket(
            Path(self._task.root),
            content,
            store=store.id,
            path=bucket_file(store.id, batch, batch, split, attempt),
            lower_batch=batch,
            upper_batch=batch,
            split=split,
            level=0,
            selections=selections,
            keeps_all=store.keeps_all,
        )


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
