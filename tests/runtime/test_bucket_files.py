"""Buckets of one task are ranges of one file: each is read alone, and damage is that of the range it is in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dovetail.core.errors import BucketCorrupt, BucketMissing
from dovetail.runtime.bucket_files import BucketFiles
from dovetail.store.bucket_file import MOST_BYTES_READ, Bucket, BucketIndex, BucketMeta, check_bucket
from dovetail.store.write_bucket import BucketContent

SIZES = (1, 3, MOST_BYTES_READ // 8 + 5, 2)
"""In rows; one is mapped, the others are read as a whole."""


def content(first: int, rows: int) -> BucketContent:
    values = np.arange(first, first + rows)
    index = BucketIndex(values.astype(np.uint64), np.arange(rows, dtype=np.uint32))
    return BucketContent({"v": pa.array(values)}, (values.astype(np.uint64),), {"[v]": index}, values, rows)


def written(root: Path, **given: int) -> list[BucketMeta]:
    files = BucketFiles(root, 7, **given)
    metas = [
        files.write(content(place * 10, rows), f"s{place}", place, selections=("x",), keeps_all=True)
        for place, rows in enumerate(SIZES)
    ]
    files.close()
    return metas


def values(root: Path, meta: BucketMeta) -> list[int]:
    return Bucket(root, meta).column("v").to_pylist()  # type: ignore[no-any-return]


def flip(path: Path, place: int) -> None:
    damaged = bytearray(path.read_bytes())
    damaged[place] ^= 1
    path.write_bytes(bytes(damaged))


def test_buckets_of_a_task_share_a_file_and_are_read_one_by_one(tmp_path: Path) -> None:
    metas = written(tmp_path)
    assert len({meta.path for meta in metas}) == 1
    assert len({meta.key for meta in metas}) == len(SIZES)
    for place, (meta, rows) in enumerate(zip(metas, SIZES, strict=True)):
        check_bucket(tmp_path, meta)
        assert (meta.store, meta.lower_batch, meta.upper_batch, meta.split) == (f"s{place}", 7, 7, place)
        assert values(tmp_path, meta) == list(range(place * 10, place * 10 + rows))
        bucket = Bucket(tmp_path, meta)
        index = bucket.index("[v]")
        assert index is not None
        assert index.codes.tolist() == bucket.selection_words(0).tolist() == list(range(place * 10, place * 10 + rows))
        assert (meta.min_time_us, meta.max_time_us) == (place * 10, place * 10 + rows - 1)
        assert BucketMeta.from_json(meta.to_json()) == meta


def test_arrays_of_a_mapped_range_lie_as_compiled_code_wants_them(tmp_path: Path) -> None:
    for meta in written(tmp_path):
        bucket = Bucket(tmp_path, meta)
        index = bucket.index("[v]")
        assert index is not None
        assert (
            index.codes.ctypes.data % 8 == index.rows.ctypes.data % 4 == bucket.selection_words(0).ctypes.data % 8 == 0
        )


def test_a_large_bucket_has_a_file_of_its_own(tmp_path: Path) -> None:
    metas = written(tmp_path, own_file_bytes=MOST_BYTES_READ)
    assert [meta.offset is None for meta in metas] == [False, False, True, False]
    assert len({meta.path for meta in metas}) == 2
    assert [len(values(tmp_path, meta)) for meta in metas] == list(SIZES)


@pytest.mark.parametrize("damaged", range(len(SIZES)))
def test_damage_is_found_in_the_range_where_it_is_and_nowhere_else(tmp_path: Path, damaged: int) -> None:
    metas = written(tmp_path)
    hurt = metas[damaged]
    flip(tmp_path / hurt.path, (hurt.offset or 0) + hurt.size_bytes // 2)
    for place, meta in enumerate(metas):
        if place != damaged:
            check_bucket(tmp_path, meta)
            assert len(values(tmp_path, meta)) == SIZES[place]
            continue
        for read in (check_bucket, Bucket):
            with pytest.raises(BucketCorrupt, match=rf"{SIZES[place]} rows of store s{place}, of batches 7 to 7"):
                read(tmp_path, meta)


def test_of_a_file_cut_short_what_is_left_is_read(tmp_path: Path) -> None:
    metas = written(tmp_path)
    path = tmp_path / metas[-1].path
    path.write_bytes(path.read_bytes()[:-1])
    assert values(tmp_path, metas[0]) == [0]
    for read in (check_bucket, Bucket):
        with pytest.raises(BucketCorrupt, match="were committed: lost are 2 rows of store s3"):
            read(tmp_path, metas[-1])
    path.unlink()
    with pytest.raises(BucketMissing, match="is missing"):
        check_bucket(tmp_path, metas[0])


def test_a_task_that_keeps_nothing_writes_nothing(tmp_path: Path) -> None:
    BucketFiles(tmp_path, 7).close()
    assert list(tmp_path.iterdir()) == []
