"""The buckets of a group table: what each batch added to its groups, sorted by code.

Nothing is ever changed in them: a group is the fold of its rows in all buckets, and a reader that began later takes
only buckets from its first batch on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.fold.exact_sum import SUM_TYPE
from dovetail.kernels.match.hash_keys import CodeRange
from dovetail.kernels.match.sort_codes import sort_codes
from dovetail.plan.group_plan import GROUP_INDEX, Fold, GroupTable
from dovetail.runtime.batch_task import BatchTask, MergeTask
from dovetail.runtime.bucket_files import BucketFiles
from dovetail.runtime.groups.partial_groups import (
    PANE,
    PartialGroups,
    codes_of_rows,
    columns_of_rows,
    concat_groups,
    fold_groups,
    rows_of_columns,
)
from dovetail.runtime.probe.mapped_bucket import map_bucket
from dovetail.runtime.report import MergedBuckets
from dovetail.store.bucket_file import Bucket, BucketIndex, BucketMeta
from dovetail.store.layout import bucket_file
from dovetail.store.write_bucket import BucketContent, write_bucket

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


class GroupStore:
    """One table in one task."""

    def __init__(self, task: BatchTask, table: GroupTable) -> None:
        self._root = Path(task.root)
        self._table = table
        self._metas = [meta for meta in task.buckets if meta.store == table.id]
        self._timezone = task.timezone

    def find(self, codes: U64, first_batch: int) -> PartialGroups:
        """Rows with one of these codes; other keys may have the same."""
        # Sorted by hand: np.unique hashes, which takes twenty times as long.
        wanted = np.sort(codes)
        wanted = wanted[np.flatnonzero(np.diff(wanted, prepend=~wanted[:1]))]
        found = [self.empty()]
        for meta, bucket, index in self._open(first_batch):
            lower = np.searchsorted(index.codes, wanted)
            counts = np.searchsorted(index.codes, wanted, side="right") - lower
            places = np.repeat(lower - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
            if len(places):
                found.append(_rows(self._table, bucket, meta, index.rows[places].astype(np.int64)))
        return concat_groups(found)

    def in_panes(self, ranges: Sequence[CodeRange], lower_us: int, upper_us: int, first_batch: int) -> PartialGroups:
        """Rows of these codes in panes that begin from `lower_us` to below `upper_us`."""
        found = [self.empty()]
        for meta, bucket, index in self._open(first_batch) if ranges else ():
            if meta.min_time_us is None or meta.max_time_us is None:
                continue
            if meta.min_time_us >= upper_us or meta.max_time_us < lower_us:
                continue
            places = np.concatenate([index.rows[codes.slice_of(index.codes)] for codes in ranges]).astype(np.int64)
            panes = bucket.times(PANE)[places]
            places = places[(panes >= lower_us) & (panes < upper_us)]
            if len(places):
                found.append(_rows(self._table, bucket, meta, places))
        return concat_groups(found)

    def empty(self) -> PartialGroups:
        """No rows, with every column."""
        columns = {
            column.name: pa.nulls(0, SUM_TYPE if column.fold is Fold.SUM else arrow_type(column.type, self._timezone))
            for column in self._table.columns
        }
        keys = tuple(pa.nulls(0, arrow_type(kind, self._timezone)) for _, kind in self._table.keys)
        is_paned = self._table.is_paned
        return PartialGroups(keys, np.zeros(0, np.int64) if is_paned else None, columns, 0)

    def _open(self, first_batch: int) -> Iterator[tuple[BucketMeta, Bucket, BucketIndex]]:
        for meta in self._metas:
            if meta.lower_batch >= first_batch:
                bucket = map_bucket(self._root, meta).file
                index = bucket.index(GROUP_INDEX)
                if index is None:
                    raise ValueError(f"bucket {meta.key} has no groups")
                yield meta, bucket, index


def merge_groups(root: Path, batch: int, merge: MergeTask, table: GroupTable) -> MergedBuckets:
    """Several buckets as one, in which every group has one row."""
    first, last = merge.buckets[0], merge.buckets[-1]
    pieces = [_rows(table, Bucket(root, meta, is_copied=True), meta, None) for meta in merge.buckets]
    level = max(meta.level for meta in merge.buckets) + 1
    folded = fold_groups(table, concat_groups(pieces))
    merged: BucketMeta = write_bucket(
        root,
        _content(table, folded),
        store=table.id,
        path=bucket_file(table.id, batch, first.split, uuid4().hex[:12]),
        lower_batch=first.lower_batch,
        upper_batch=last.upper_batch,
        split=first.split,
        level=level,
        selections=(),
        keeps_all=True,
    )
    return MergedBuckets(merged, tuple(meta.key for meta in merge.buckets))


def _rows(table: GroupTable, bucket: Bucket, meta: BucketMeta, places: I64 | None) -> PartialGroups:
    columns = {name: bucket.column(name) for name in meta.columns}
    if places is None:
        return rows_of_columns(table, columns, meta.rows)
    take = pa.array(places)
    return rows_of_columns(table, {name: column.take(take) for name, column in columns.items()}, len(places))


def write_groups(files: BucketFiles, table: GroupTable, rows: PartialGroups, split: int) -> BucketMeta:
    """Rows of this batch, to be found by their key."""
    return files.write(_content(table, rows), table.id, split, selections=(), keeps_all=True)


def _content(table: GroupTable, rows: PartialGroups) -> BucketContent:
    codes, order = sort_codes(codes_of_rows(table, rows))
    ordered = rows.take(order)
    return BucketContent(
        columns=columns_of_rows(table, ordered),
        selection_words=(),
        indexes={GROUP_INDEX: BucketIndex(codes, np.arange(len(codes), dtype=np.uint32))},
        times=ordered.panes,
        rows=ordered.rows,
    )
