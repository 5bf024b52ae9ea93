"""Merging of buckets: several short sorted runs become one, so that a probe searches few (log-structured)."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa

from dovetail.kernels.sort_codes import sort_by_code_and_order
from dovetail.runtime.batch_task import MergeTask
from dovetail.runtime.report import MergedBuckets
from dovetail.store.bucket_file import Bucket, BucketContent, BucketIndex, BucketMeta, times_of, write_bucket
from dovetail.store.layout import bucket_file


def run_merge(root: Path, merge: MergeTask, event_time: str | None) -> MergedBuckets:
    """All buckets have one layout, so columns, selection bits and indexes join position by position."""
    buckets = [Bucket(root, meta) for meta in merge.buckets]
    first, last = merge.buckets[0], merge.buckets[-1]
    columns = {name: pa.concat_arrays([bucket.column(name) for bucket in buckets]) for name in first.columns}
    word_count = (len(first.selections) + 63) // 64
    content = BucketContent(
        columns=columns,
        selection_words=tuple(
            np.concatenate([bucket.selection_words(word) for bucket in buckets]) for word in range(word_count)
        ),
        indexes={name: _merge_index(name, buckets) for name, _ in first.indexes},
        times=times_of(columns[event_time]) if event_time in columns else None,
        rows=sum(meta.rows for meta in merge.buckets),
    )
    merged: BucketMeta = write_bucket(
        root,
        content,
        store=first.store,
        path=bucket_file(first.store, first.lower_batch, last.upper_batch, first.split, uuid4().hex[:12]),
        lower_batch=first.lower_batch,
        upper_batch=last.upper_batch,
        split=first.split,
        level=max(meta.level for meta in merge.buckets) + 1,
        selections=first.selections,
        keeps_all=first.keeps_all,
        cell=first.cell,
    )
    return MergedBuckets(merged, tuple(meta.path for meta in merge.buckets))


def _merge_index(name: str, buckets: list[Bucket]) -> BucketIndex:
    codes, rows, orders, base = [], [], [], 0
    for bucket in buckets:
        index = bucket.index(name)
        if index is None:
            raise ValueError(f"bucket {bucket.meta.path} lacks index {name}")
        codes.append(index.codes)
        rows.append(index.rows + np.uint32(base))
        orders += [] if index.orders is None else [index.orders]
        base += bucket.meta.rows
    all_codes = np.concatenate(codes)
    if not orders:
        # A stable sort is a merge of sorted runs, and gallops through them.
        order = np.argsort(all_codes, kind="stable")
        return BucketIndex(all_codes[order], np.concatenate(rows)[order])
    all_orders = np.concatenate(orders)
    order = sort_by_code_and_order(all_codes, all_orders)
    return BucketIndex(all_codes[order], np.concatenate(rows)[order], all_orders[order])
