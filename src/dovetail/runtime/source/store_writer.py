"""Rows become a bucket: what somebody wants of them is indexed and written."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.plan.store_plan import IndexPlan, StorePlan
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.report import STATISTICS, TaskReport, count_keys
from dovetail.runtime.source.build_index import build_index
from dovetail.runtime.source.sample_key_groups import sample_key_groups
from dovetail.runtime.source.wanted_rows import RowDecider, StoreRows
from dovetail.store.bucket_file import FAILED, BucketContent, BucketIndex, BucketMeta, MatrixCell, write_bucket
from dovetail.store.layout import bucket_file

PIECES_PER_SPLIT = 1 << 20
"""Splits of one store differ between all tasks of a batch; a task has so many of its own."""


class StoreWriter:
    """Writes buckets of one task; what fails of a query's selections and keys goes to the report."""

    def __init__(self, task: BatchTask, report: TaskReport) -> None:
        self._task = task
        self.report = report
        self._decider = RowDecider(task, report)
        self.written: list[BucketMeta] = []

    def write(
        self,
        store: StorePlan,
        columns: dict[str, pa.Array],
        times: npt.NDArray[np.int64] | None,
        split: int,
        *,
        is_counted: bool = True,
    ) -> None:
        """`is_counted` is False for rows that are older than the batch: statistics speak of new ones."""
        rows = self._decider.decide(store, columns, times, is_counted=is_counted)
        if is_counted:
            with self.report.timed(STATISTICS):
                self.report.key_groups += sample_key_groups(self._task, self._decider, store, rows)
        for line, cells in self._lines(store, rows, split):
            if line.length:
                content = BucketContent(
                    columns={name: line.columns[name] for name in store.columns},
                    selection_words=line.selections.words,
                    indexes=self._indexes(store, line),
                    times=line.times,
                    rows=line.length,
                )
                failed = line.selections.failed
                names = tuple(FAILED if place in failed else name for place, name in enumerate(store.selection_names))
                self.write_content(store, content, names, split, cells, is_counted=is_counted)

    def write_content(
        self,
        store: StorePlan,
        content: BucketContent,
        selections: tuple[str, ...],
        split: int,
        cells: tuple[MatrixCell | None, ...] = (None,),
        *,
        is_counted: bool = True,
    ) -> None:
        """One bucket, or in a join-matrix one for each of the cells."""
        if is_counted:
            group_count = self._task.plan.placement.group_count
            with self.report.timed(STATISTICS):
                self.report.keys += [
                    count_keys(store.id, index, content.indexes[index.id].codes, group_count)
                    for index in store.indexes
                    if index.id in content.indexes
                ]
        self.written += [self._write(store, content, selections, split, cell) for cell in cells]

    def _lines(
        self, store: StorePlan, rows: StoreRows, split: int
    ) -> Iterator[tuple[StoreRows, tuple[MatrixCell | None, ...]]]:
        """All rows for one bucket, which lies anywhere; or in a join-matrix those of each line, for all its cells."""
        matrix = self._task.plan.matrix
        if matrix is None:
            yield rows, (None,)
            return
        count = matrix.line_count(store.id)
        # Dealt out in turn; where a batch brings few rows, not always to the first lines.
        lines = (np.arange(rows.length) + self._task.batch + split) % count
        for line in range(count):
            cells = matrix.cells(store.id, line)
            total = matrix.cell_count
            yield rows.where(lines == line), tuple(MatrixCell(cell, total, copy) for copy, cell in enumerate(cells))

    def _indexes(self, store: StorePlan, rows: StoreRows) -> dict[str, BucketIndex]:
        """Those that fail are left out."""
        found = {}
        for index in store.indexes:
            made = self._decider.guarded(store, index, rows, partial(self._index, store, index))
            if made is not None:
                built, wanted = made
                found[index.id] = built if wanted is None else built.moved(np.flatnonzero(wanted))
        return found

    def _index(self, store: StorePlan, index: IndexPlan, rows: StoreRows) -> BucketIndex:
        timezone = self._task.timezone
        return build_index(index, lambda c: rows.columns[c.name], rows.length, timezone, store.event_time)

    def _write(
        self,
        store: StorePlan,
        content: BucketContent,
        selections: tuple[str, ...],
        split: int,
        cell: MatrixCell | None,
    ) -> BucketMeta:
        batch, attempt = self._task.batch, uuid4().hex[:12]
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
            cell=cell,
        )
