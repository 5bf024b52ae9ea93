from __future__ import annotations

import datetime
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dovetail.core.errors import BucketCorrupt, BucketMissing, SessionError
from dovetail.kernels.match.special_values import NULL_TIME
from dovetail.store.bucket_file import (
    Bucket,
    BucketIndex,
    BucketMeta,
    check_bucket,
    time_range,
    times_of,
)
from dovetail.store.write_bucket import BucketContent, write_bucket

PATH = "buckets/views/b0000000003-s1-abc.arrow"
NOON = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)
COLUMNS = {
    "id": pa.array([1, 2, None], pa.int32()),
    "ok": pa.array([True, None, False]),
    "name": pa.array(["", None, "ä€"]),
    "price": pa.array([Decimal("1.10"), None, Decimal("-9.99")], pa.decimal128(10, 2)),
    "ts": pa.array([NOON, None, NOON + datetime.timedelta(seconds=1)], pa.timestamp("us", tz="UTC")),
}
INDEXES = {
    "[id]": BucketIndex(np.array([5, (1 << 64) - 1], np.uint64), np.array([1, 0], np.uint32)),
    "[name]": BucketIndex(np.array([1, 2, 3], np.uint64), np.array([2, 1, 0], np.uint32)),
}
WORDS = (np.array([1, 2, 3], np.uint64), np.array([1 << 63, 0, 1], np.uint64))


def written(root: Path, columns: dict[str, pa.Array] = COLUMNS) -> BucketMeta:
    content = BucketContent(columns, WORDS, INDEXES, times_of(COLUMNS["ts"]), rows=3)
    return write_bucket(
        root,
        content,
        store="views",
        path=PATH,
        lower_batch=3,
        upper_batch=3,
        split=1,
        level=0,
        selections=tuple(f"selection {place}" for place in range(65)),
        keeps_all=False,
    )


def test_what_was_written_is_read(tmp_path: Path) -> None:
    meta = written(tmp_path)
    check_bucket(tmp_path, meta)
    bucket = Bucket(tmp_path, meta)
    for name, column in COLUMNS.items():
        assert bucket.column(name).equals(column)
    for word, words in enumerate(WORDS):
        assert bucket.selection_words(word).tolist() == words.tolist()
    for name, index in INDEXES.items():
        found = bucket.index(name)
        assert found is not None
        assert (found.codes.tolist(), found.rows.tolist()) == (index.codes.tolist(), index.rows.tolist())
    assert bucket.index("[price]") is None


def test_times_are_microseconds_with_a_mark_for_null(tmp_path: Path) -> None:
    noon_us = int(NOON.timestamp()) * 1_000_000
    meta = written(tmp_path)
    assert Bucket(tmp_path, meta).times("ts").tolist() == [noon_us, NULL_TIME, noon_us + 1_000_000]
    assert (meta.min_time_us, meta.max_time_us) == (noon_us, noon_us + 1_000_000)


def test_a_slice_is_written_as_its_own_rows(tmp_path: Path) -> None:
    longer = {name: pa.concat_arrays([column, column]).slice(2, 3) for name, column in COLUMNS.items()}
    bucket = Bucket(tmp_path, written(tmp_path, longer))
    for name, column in longer.items():
        assert bucket.column(name).to_pylist() == column.to_pylist()


def test_only_known_times_count_for_the_range() -> None:
    assert time_range(None) == (None, None)
    assert time_range(np.array([NULL_TIME, NULL_TIME])) == (None, None)
    assert time_range(np.array([NULL_TIME, -3, 4])) == (-3, 4)


def test_the_record_survives_json(tmp_path: Path) -> None:
    meta = written(tmp_path)
    assert BucketMeta.from_json(meta.to_json()) == meta
    assert meta.rows == 3
    assert meta.size_bytes == (tmp_path / PATH).stat().st_size
    assert meta.indexes == (("[id]", 2), ("[name]", 3))


@pytest.mark.parametrize(
    "change",
    [
        {"columns": ("id",)},
        {"selections": ("other",)},
        {"keeps_all": True},
        {"indexes": (("[id]", 2),)},
    ],
    ids=str,
)
def test_layouts_differ_by_columns_selections_and_indexes(tmp_path: Path, change: dict[str, object]) -> None:
    meta = written(tmp_path)
    assert replace(meta, **change).layout != meta.layout  # type: ignore[arg-type]


def test_the_number_of_index_entries_is_no_part_of_the_layout(tmp_path: Path) -> None:
    meta = written(tmp_path)
    assert replace(meta, indexes=(("[id]", 3), ("[name]", 0)), rows=9).layout == meta.layout


@pytest.mark.parametrize("place", [0.0, 0.5, 0.999])
def test_one_changed_byte_anywhere_is_corrupt(tmp_path: Path, place: float) -> None:
    meta = written(tmp_path)
    path = tmp_path / PATH
    content = bytearray(path.read_bytes())
    content[int(len(content) * place)] ^= 0x01
    path.write_bytes(bytes(content))
    with pytest.raises(BucketCorrupt, match=PATH) as caught:
        check_bucket(tmp_path, meta)
    assert caught.value.hint


def test_a_file_cut_short_is_corrupt_when_checked_and_when_opened(tmp_path: Path) -> None:
    meta = written(tmp_path)
    content = (tmp_path / PATH).read_bytes()
    (tmp_path / PATH).write_bytes(content[:-1])
    for read in (check_bucket, Bucket):
        with pytest.raises(BucketCorrupt, match=f"{PATH} has {len(content) - 1} bytes, {len(content)} were committed"):
            read(tmp_path, meta)


def test_bytes_that_are_no_arrow_file_are_corrupt_when_opened(tmp_path: Path) -> None:
    meta = written(tmp_path)
    (tmp_path / PATH).write_bytes(b"\0" * meta.size_bytes)
    with pytest.raises(BucketCorrupt, match=PATH):
        Bucket(tmp_path, meta)


def test_a_missing_file_is_missing_when_checked_and_when_opened(tmp_path: Path) -> None:
    meta = written(tmp_path)
    (tmp_path / PATH).unlink()
    for read in (check_bucket, Bucket):
        with pytest.raises(BucketMissing, match=f"{PATH} is missing"):
            read(tmp_path, meta)


def test_a_record_may_name_a_cell_only_if_it_has_none(tmp_path: Path) -> None:
    """Checkpoints of the join-matrix, which Dovetail had as a layout, cannot be read as if rows lay in them once."""
    meta = written(tmp_path)
    assert BucketMeta.from_json({**meta.to_json(), "cell": None}) == meta
    with pytest.raises(SessionError, match="made with the layout 'join_matrix'"):
        BucketMeta.from_json({**meta.to_json(), "cell": [0, 4, 0]})
