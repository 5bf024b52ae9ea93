"""Rows become a bucket: all selections decided at once (A4), rows that nobody wants dropped, the rest indexed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.core.errors import EvaluationError
from dovetail.kernels.evaluate import evaluate_mask
from dovetail.kernels.select_rows import Mask, any_of, pack_masks
from dovetail.plan.affected_queries import queries_of_index, queries_of_selection, selections_of_queries
from dovetail.plan.fill import filled_by
from dovetail.plan.store_plan import IndexPlan, StorePlan
from dovetail.query.expression import TRUE
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.build_index import build_index
from dovetail.runtime.report import STATISTICS, SelectionCount, TaskReport, count_keys, sample_query_sets
from dovetail.store.bucket_file import BucketContent, BucketIndex, BucketMeta, MatrixCell, write_bucket
from dovetail.store.layout import bucket_file

PIECES_PER_SPLIT = 1 << 20
"""Splits of one store differ between all tasks of a batch; a task has so many of its own."""


class StoreWriter:
    """Writes buckets of one task; what fails of a query's selections and keys goes to the report."""

    def __init__(self, task: BatchTask, report: TaskReport) -> None:
        self._task = task
        self.report = report
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
        length = len(next(iter(columns.values())))
        masks = self._selection_masks(store, columns, length, set() if is_counted else {filled_by(store.id)})
        if is_counted:
            with self.report.timed(STATISTICS):
                self.report.selections += [
                    SelectionCount(store.id, selection, length, int(np.count_nonzero(mask)))
                    for selection, mask in masks.items()
                ]
                self.report.query_sets += sample_query_sets(store, masks, length)
        rows = _Rows(columns, masks, times, length)
        if not store.keeps_all:
            wanted = any_of(list(masks.values()), length)
            if not wanted.all():
                rows = rows.where(wanted)
        for line, cells in self._lines(store, rows, split):
            if line.length:
                self._write_rows(store, line, split, cells, is_counted=is_counted)

    def _lines(
        self, store: StorePlan, rows: _Rows, split: int
    ) -> Iterator[tuple[_Rows, tuple[MatrixCell | None, ...]]]:
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

    def _write_rows(
        self, store: StorePlan, rows: _Rows, split: int, cells: tuple[MatrixCell | None, ...], *, is_counted: bool
    ) -> None:
        indexes = self._indexes(store, rows)
        if is_counted:
            group_count = self._task.plan.placement.group_count
            with self.report.timed(STATISTICS):
                self.report.keys += [count_keys(store.id, name, ix.codes, group_count) for name, ix in indexes.items()]
        content = BucketContent(
            columns={name: rows.columns[name] for name in store.columns},
            selection_words=pack_masks(list(rows.masks.values()), rows.length),
            indexes=indexes,
            times=rows.times,
            rows=rows.length,
        )
        self.written += [self._write(store, content, tuple(rows.masks), split, cell) for cell in cells]

    def _selection_masks(
        self, store: StorePlan, columns: dict[str, pa.Array], length: int, writers: set[str]
    ) -> dict[str, Mask]:
        """By selection; one that fails is left out, so that nobody takes its rows for refused ones later."""
        masks = {}
        for selection in store.tested_selections:
            try:
                masks[str(selection)] = evaluate_mask(
                    selection, lambda column: columns[column.name], length, timezone=self._task.timezone
                )
            except EvaluationError as error:
                self.report.fail(queries_of_selection(self._task.plan, store.id, selection) | writers, error)
        return masks

    def _indexes(self, store: StorePlan, rows: _Rows) -> dict[str, BucketIndex]:
        indexes = {}
        for index in store.indexes:
            try:
                indexes[index.id] = build_index(
                    index, lambda c: rows.columns[c.name], rows.length, self._task.timezone, store.event_time
                )
            except EvaluationError:
                guarded = self._guarded_index(store, index, rows)
                if guarded is not None:
                    indexes[index.id] = guarded
        return indexes

    def _guarded_index(self, store: StorePlan, index: IndexPlan, rows: _Rows) -> BucketIndex | None:
        """Only the rows that some query with this key wants: its selection may guard the key from failing."""
        queries = queries_of_index(self._task.plan, store.id, index)
        selections = selections_of_queries(self._task.plan, store.id, queries)
        guards = [rows.masks[str(selection)] for selection in selections if str(selection) in rows.masks]
        wanted = np.ones(rows.length, np.bool_) if TRUE in selections else any_of(guards, rows.length)
        kept = rows.where(wanted)
        try:
            found = build_index(
                index, lambda c: kept.columns[c.name], kept.length, self._task.timezone, store.event_time
            )
        except EvaluationError as error:
            self.report.fail(queries, error)
            return None
        return BucketIndex(found.codes, np.flatnonzero(wanted)[found.rows].astype(np.uint32), found.orders)

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


@dataclass(frozen=True)
class _Rows:
    """Rows of a store, with what each selection says of them; `times` of None: without event time."""

    columns: dict[str, pa.Array]
    masks: dict[str, Mask]
    times: npt.NDArray[np.int64] | None
    length: int

    def where(self, wanted: Mask) -> _Rows:
        keep = pa.array(wanted)
        return _Rows(
            {name: column.filter(keep) for name, column in self.columns.items()},
            {name: mask[wanted] for name, mask in self.masks.items()},
            None if self.times is None else self.times[wanted],
            int(wanted.sum()),
        )
