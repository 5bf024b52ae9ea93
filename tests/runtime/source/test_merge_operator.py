from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

from dovetail.kernels.match.hash_keys import hash_keys
from dovetail.runtime.batch_task import MergeTask
from dovetail.runtime.source.merge_operator import run_merge
from dovetail.store.bucket_file import (
    Bucket,
    BucketIndex,
    BucketMeta,
    check_bucket,
    times_of,
)
from dovetail.store.layout import written_batch
from dovetail.store.write_bucket import BucketContent, write_bucket

NOON = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC)


def written(root: Path, batch: int, keys: list[int | None]) -> BucketMeta:
    codes = hash_keys([pa.array(keys, pa.int32())])
    valid = np.flatnonzero(np.ones(len(keys), np.bool_) if codes.valid_mask is None else codes.valid_mask)
    order = valid[np.argsort(codes.codes[valid])]
    moments = pa.array([NOON + datetime.timedelta(seconds=batch)] * len(keys), pa.timestamp("us", tz="UTC"))
    content = BucketContent(
        columns={
            "k": pa.array(keys, pa.int32()),
            "name": pa.array([None if k is None else str(k) for k in keys], pa.string()),
            "ts": moments,
        },
        selection_words=(np.arange(len(keys), dtype=np.uint64) + np.uint64(100 * batch),),
        indexes={"[k]": BucketIndex(codes.codes[order], order.astype(np.uint32))},
        times=times_of(moments),
        rows=len(keys),
    )
    return write_bucket(
        root,
        content,
        store="s",
        path=f"buckets/s/{batch}.arrow",
        lower_batch=batch,
        upper_batch=batch,
        split=0,
        level=0,
        selections=("v > 1",),
        keeps_all=True,
    )


def test_a_merged_bucket_holds_all_rows_bits_and_entries(tmp_path: Path) -> None:
    keys: list[list[int | None]] = [[3, None, 1], [1, 1], [None], [2, 3]]
    metas = tuple(written(tmp_path, batch, own) for batch, own in enumerate(keys))
    done = run_merge(tmp_path, 9, MergeTask("s", metas, partition=0), "ts")
    assert done.replaced == tuple(meta.key for meta in metas)
    meta = done.merged
    check_bucket(tmp_path, meta)
    assert (meta.lower_batch, meta.upper_batch, meta.level, meta.rows) == (0, 3, 1, 8)
    assert written_batch(meta.path) == 9
    assert meta.layout == metas[0].layout
    assert (meta.min_time_us, meta.max_time_us) == (metas[0].min_time_us, metas[3].max_time_us)

    bucket = Bucket(tmp_path, meta)
    flat = [key for own in keys for key in own]
    assert bucket.column("k").to_pylist() == flat
    assert bucket.column("name").to_pylist() == [None if key is None else str(key) for key in flat]
    assert bucket.selection_words(0).tolist() == [0, 1, 2, 100, 101, 200, 300, 301]
    index = bucket.index("[k]")
    assert index is not None
    assert sorted(index.rows.tolist()) == [row for row, key in enumerate(flat) if key is not None]
    assert (np.diff(index.codes.astype(object)) >= 0).all()
    codes = hash_keys([pa.array(flat, pa.int32())]).codes
    assert index.codes.tolist() == codes[index.rows].tolist()


def test_the_merged_files_are_left_for_the_commit_to_remove(tmp_path: Path) -> None:
    metas = tuple(written(tmp_path, batch, [1]) for batch in range(2))
    run_merge(tmp_path, 9, MergeTask("s", metas, partition=0), "ts")
    assert all((tmp_path / meta.path).exists() for meta in metas)
