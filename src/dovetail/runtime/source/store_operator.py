"""The stage between source and first hop, where rows are shipped: one partition keeps what was sent to it.

What decides about rows was decided where they were read. Here they are put together, indexed by the keys
that they were sent for, and written as one bucket per store, or more where they would not fit in memory: home rows
first.
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
from dovetail.kernels.select.select_all import select_all
from dovetail.kernels.word_bits import word_count
from dovetail.plan.store_plan import IndexPlan, StorePlan
from dovetail.query.expression import Expression
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.bucket_files import BucketFiles
from dovetail.runtime.message import Kind, Message
from dovetail.runtime.report import ShippedCount, TaskReport
from dovetail.runtime.source.build_index import build_index
from dovetail.runtime.source.ship_rows import FailedInSource, ShippedRows, marked_rows, sends_bits
from dovetail.runtime.source.store_writer import PIECES_PER_SPLIT, StoreWriter
from dovetail.store.bucket_file import BucketIndex, BucketMeta, times_of
from dovetail.store.write_bucket import BucketContent

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]


def run_store(task: BatchTask, partition: int, messages: Iterable[Message]) -> Iterator[Message]:
    """What is not for this stage passes through."""
    with work_limit(task.limits.longest_ms):
        yield from _run_store(task, partition, messages)


def _run_store(task: BatchTask, partition: int, messages: Iterable[Message]) -> Iterator[Message]:
    began = time.perf_counter()
    stage = _StoreStage(task, partition)
    for message in messages:
        if message.kind is Kind.ROWS:
            stage.take(message.payload)
        elif message.kind is Kind.FAILED:
            stage.leave_out(FailedInSource.from_bytes(message.payload))
        else:
            yield message
    for meta in stage.close():
        payload = json.dumps(meta.to_json()).encode()
        for target in range(task.plan.placement.partition_count):
            yield Message(target, Kind.BUCKET, payload)
    stage.report.seconds_by_part["store"] = time.perf_counter() - began
    yield Message(0, Kind.REPORT, stage.report.to_bytes())


def keeper_of(meta: BucketMeta) -> int:
    """The partition that wrote this bucket of the batch's shipped rows."""
    return meta.split // PIECES_PER_SPLIT


class _StoreStage:
    """Only about `piece_bytes` of rows wait in memory: then they become buckets of their own."""

    def __init__(self, task: BatchTask, partition: int) -> None:
        self._task = task
        self._partition = partition
        self._next_split = partition * PIECES_PER_SPLIT
        self.report = TaskReport()
        self._files = BucketFiles(Path(task.root), task.batch)
        self._writer = StoreWriter(task, self.report, self._files)
        self._waiting: dict[str, list[ShippedRows]] = {}
        self._waiting_bytes = 0
        self._failed: list[FailedInSource] = []
        self._count_by_store: dict[str, ShippedCount] = {}

    def take(self, payload: bytes) -> None:
        shipped = ShippedRows.from_bytes(payload)
        self._waiting.setdefault(shipped.store, []).append(shipped)
        self._waiting_bytes += len(payload)
        count = self._count_by_store.setdefault(shipped.store, ShippedCount(shipped.store, self._partition))
        count.rows += shipped.rows
        count.home_rows += shipped.home_rows
        count.message_bytes += len(payload)
        if self._waiting_bytes >= self._task.piece_bytes:
            self._write_waiting()

    def leave_out(self, failed: FailedInSource) -> None:
        """Somebody's selection or key failed: it counts nowhere, for an index has each row of the batch or none."""
        self._failed.append(failed)

    def close(self) -> list[BucketMeta]:
        self._write_waiting()
        self._files.close()
        self.report.shipped += self._count_by_store.values()
        return [self._without_failed(meta) for meta in self._writer.written]

    def _without_failed(self, meta: BucketMeta) -> BucketMeta:
        for failed in self._failed:
            if failed.store == meta.store:
                meta = meta.without(failed.selections, failed.indexes)
        return meta

    def _write_waiting(self) -> None:
        for store_id, waiting in sorted(self._waiting.items()):
            self._write(self._task.plan.store(store_id), sorted(waiting, key=lambda each: each.split))
        self._waiting, self._waiting_bytes = {}, 0

    def _write(self, store: StorePlan, waiting: list[ShippedRows]) -> None:
        home = [each.table.slice(0, each.home_rows) for each in waiting]
        copied = [each.table.slice(each.home_rows) for each in waiting]
        parts = [part for part in (*home, *copied) if part.num_rows]
        columns = {name: pa.concat_arrays([part.column(f"c:{name}") for part in parts]) for name in store.columns}
        home_rows, rows = sum(part.num_rows for part in home), sum(part.num_rows for part in parts)
        content = BucketContent(
            columns=columns,
            selection_words=self._selection_words(store, parts, columns, rows),
            indexes={
                index.id: self._index(store, index, columns, np.flatnonzero(marked_rows(parts, place)))
                for place, index in enumerate(store.indexes)
            },
            times=times_of(columns[store.event_time]) if store.event_time is not None else None,
            rows=rows,
            copied_rows=rows - home_rows,
        )
        self._writer.write_content(store, content, store.selection_names, self._next_split)
        self._next_split += 1

    def _selection_words(
        self, store: StorePlan, parts: list[pa.RecordBatch], columns: dict[str, pa.Array], rows: int
    ) -> tuple[U64, ...]:
        """As they were sent; or decided again, by the same conditions over the same values."""
        if sends_bits(self._task.plan, store):
            words = range(word_count(len(store.tested_selections)))
            found = (np.concatenate([part.column(f"s:{word}").to_numpy() for part in parts]) for word in words)
            return tuple(word.astype(np.uint64) for word in found)
        timezone = self._task.timezone
        decided = select_all(store.tested_selections, lambda c: columns[c.name], rows, timezone, _never_fails)
        return decided.words.words

    def _index(self, store: StorePlan, index: IndexPlan, columns: dict[str, pa.Array], rows: I64) -> BucketIndex:
        take = pa.array(rows)
        timezone, event_time = self._task.timezone, store.event_time
        return build_index(index, lambda c: columns[c.name].take(take), len(rows), timezone, event_time).moved(rows)


def _never_fails(_selection: Expression, error: Exception) -> None:
    raise error
