"""Merging of buckets: several short sorted runs become one, so that a probe searches few (log-structured)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.kernels.match.sort_codes import sort_by_code_and_order
from dovetail.kernels.word_bits import word_count
from dovetail.runtime.batch_task import MergeTask
from dovetail.runtime.report import MergedBuckets
from dovetail.store.bucket_file import Bucket, BucketIndex, BucketMeta, times_of
from dovetail.store.layout import bucket_file
from dovetail.store.write_bucket import BucketContent, write_bucket


def run_merge(root: Path, batch: int, merge: MergeTask, event_time: str | None) -> MergedBuckets:
    """All buckets have one layout, so columns, selection bits and indexes join position by position."""
    buckets = [Bucket(root, meta, is_copied=True) for meta in merge.buckets]
    first, last = merge.buckets[0], merge.buckets[-1]
    runs = _runs(merge.buckets)
    columns = {
        name: pa.concat_arrays([buckets[run.bucket].column(name)[run.rows] for run in runs]) for name in first.columns
    }
    content = BucketContent(
        columns=columns,
        selection_words=tuple(
            np.concatenate([buckets[run.bucket].selection_words(word)[run.rows] for run in runs])
            for word in range(word_count(len(first.selections)))
        ),
        indexes={name: _merge_index(name, buckets, _places(merge.buckets, runs)) for name, _ in first.indexes},
        times=times_of(columns[event_time]) if event_time in columns else None,
        rows=sum(meta.rows for meta in merge.buckets),
        copied_rows=sum(meta.copied_rows for meta in merge.buckets),
    )
    merged: BucketMeta = write_bucket(
        root,
        content,
        store=first.store,
        path=bucket_file(first.store, batch, first.split, uuid4().hex[:12]),
        lower_batch=first.lower_batch,
        upper_batch=last.upper_batch,
        split=first.split,
        level=max(meta.level for meta in merge.buckets) + 1,
        selections=first.selections,
        keeps_all=first.keeps_all,
    )
    return MergedBuckets(merged, tuple(meta.key for meta in merge.buckets))


@dataclass(frozen=True)
class _Run:
    """Rows of one of the buckets that stay together."""

    bucket: int
    rows: slice


def _runs(metas: Sequence[BucketMeta]) -> list[_Run]:
    """In the order in which they lie in the merged bucket: what is at home comes first there, too."""
    home = [_Run(bucket, slice(0, meta.home_rows)) for bucket, meta in enumerate(metas)]
    copied = [_Run(bucket, slice(meta.home_rows, meta.rows)) for bucket, meta in enumerate(metas)]
    return [run for run in (*home, *copied) if run.rows.start < run.rows.stop]


def _places(metas: Sequence[BucketMeta], runs: Sequence[_Run]) -> list[npt.NDArray[np.int64]]:
    """By bucket, where each of its rows goes."""
    places = [np.empty(meta.rows, np.int64) for meta in metas]
    base = 0
    for run in runs:
        count = run.rows.stop - run.rows.start
        places[run.bucket][run.rows] = np.arange(base, base + count)
        base += count
    return places


def _merge_index(name: str, buckets: list[Bucket], places: list[npt.NDArray[np.int64]]) -> BucketIndex:
    moved = []
    for bucket, own in zip(buckets, places, strict=True):
        index = bucket.index(name)
        if index is None:
            raise ValueError(f"bucket {bucket.meta.key} lacks index {name}")
        moved.append(index.moved(own))
    codes, rows = np.concatenate([each.codes for each in moved]), np.concatenate([each.rows for each in moved])
    orders = [index.orders for index in moved if index.orders is not None]
    if not orders:
        # A stable sort is a merge of sorted runs, and gallops through them.
        order = np.argsort(codes, kind="stable")
        return BucketIndex(codes[order], rows[order])
    all_orders = np.concatenate(orders)
    order = sort_by_code_and_order(codes, all_orders)
    return BucketIndex(codes[order], rows[order], all_orders[order])
