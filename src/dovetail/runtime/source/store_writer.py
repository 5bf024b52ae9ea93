"""Rows become a bucket: what somebody wants of them is indexed and written."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.plan.store_plan import IndexPlan, StorePlan
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.bucket_files import BucketFiles
from dovetail.runtime.report import STATISTICS, TaskReport, count_keys
from dovetail.runtime.source.build_index import build_index
from dovetail.runtime.source.sample_key_groups import sample_key_groups
from dovetail.runtime.source.wanted_rows import RowSelector, StoreRows
from dovetail.store.bucket_file import FAILED, BucketIndex, BucketMeta
from dovetail.store.write_bucket import BucketContent

PIECES_PER_SPLIT = 1 << 20
"""Splits of one store differ between all tasks of a batch; a task has so many of its own."""


class StoreWriter:
    """Writes buckets of one task; what fails of a query's selections and keys goes to the report."""

    def __init__(self, task: BatchTask, report: TaskReport, files: BucketFiles) -> None:
        self._task = task
        self.report = report
        self._files = files
        self._selector = RowSelector(task, report)
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
        rows = self._selector.select(store, columns, times, is_counted=is_counted)
        if is_counted:
            with self.report.timed(STATISTICS):
                self.report.key_groups += sample_key_groups(self._task, self._selector, store, rows)
        if rows.length == 0:
            return
        content = BucketContent(
            columns={name: rows.columns[name] for name in store.columns},
            selection_words=rows.selections.words,
            indexes=self._indexes(store, rows),
            times=rows.times,
            rows=rows.length,
        )
        failed = rows.selections.failed
        names = tuple(FAILED if place in failed else name for place, name in enumerate(store.selection_names))
        self.write_content(store, content, names, split, is_counted=is_counted)

    def write_content(
        self,
        store: StorePlan,
        content: BucketContent,
        selections: tuple[str, ...],
        split: int,
        *,
        is_counted: bool = True,
    ) -> None:
        if is_counted:
            group_count = self._task.plan.placement.group_count
            with self.report.timed(STATISTICS):
                self.report.keys += [
                    count_keys(store.id, index, content.indexes[index.id].codes, group_count)
                    for index in store.indexes
                    if index.id in content.indexes
                ]
        self.written.append(
            self._files.write(content, store.id, split, selections=selections, keeps_all=store.keeps_all)
        )

    def _indexes(self, store: StorePlan, rows: StoreRows) -> dict[str, BucketIndex]:
        """Those that fail on some row are left out: of how many rows such an index is, is a matter of who uses it then.

        Whoever does has it made in memory, of the rows that they want (`runtime/source/guarded_index.py`).
        """
        found = {}
        for index in store.indexes:
            made = self._selector.guarded(store, index, rows, partial(self._index, store, index))
            if made is not None and made[1] is None:
                found[index.id] = made[0]
        return found

    def _index(self, store: StorePlan, index: IndexPlan, rows: StoreRows) -> BucketIndex:
        timezone = self._task.timezone
        return build_index(index, lambda c: rows.columns[c.name], rows.length, timezone, store.event_time)
