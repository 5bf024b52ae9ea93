"""Workers keep buckets mapped between batches; a map shows what is written to its file, so they look for that."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dovetail.core.errors import BucketCorrupt, BucketMissing
from dovetail.lowering.flat_plan import Ask
from dovetail.query.expression import TRUE
from dovetail.runtime.probe.mapped_bucket import KnownPlaces, forget_buckets, map_bucket
from dovetail.store.bucket_file import MOST_BYTES_READ, BucketMeta
from dovetail.store.write_bucket import BucketContent, write_bucket

ROWS = {"read whole": 10, "mapped": MOST_BYTES_READ}


def bucket_of(root: Path, rows: int) -> BucketMeta:
    content = BucketContent({"v": pa.array(np.arange(rows))}, (), {}, None, rows)
    return write_bucket(
        root,
        content,
        store="s",
        path="buckets/s/x.arrow",
        lower_batch=3,
        upper_batch=4,
        split=0,
        level=0,
        selections=(),
        keeps_all=True,
    )


def flip(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        (byte,) = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte ^ 1]))


@pytest.mark.parametrize("rows", list(ROWS.values()), ids=list(ROWS))
def test_a_bucket_is_opened_once(tmp_path: Path, rows: int) -> None:
    meta = bucket_of(tmp_path, rows)
    assert map_bucket(tmp_path, meta) is map_bucket(tmp_path, meta)
    forget_buckets(tmp_path, set())


@pytest.mark.parametrize("rows", list(ROWS.values()), ids=list(ROWS))
@pytest.mark.parametrize("is_open", [False, True])
def test_a_flipped_bit_is_found_before_and_after_a_worker_has_opened_the_file(
    tmp_path: Path, rows: int, is_open: bool
) -> None:
    meta = bucket_of(tmp_path, rows)
    if is_open:
        map_bucket(tmp_path, meta)
    flip(tmp_path / meta.path)
    with pytest.raises(BucketCorrupt, match=rf"x\.arrow has other bytes .* {rows} rows of store s, of batches 3 to 4"):
        map_bucket(tmp_path, meta)
    forget_buckets(tmp_path, set())


def test_a_file_that_goes_while_it_is_mapped_is_missed(tmp_path: Path) -> None:
    meta = bucket_of(tmp_path, 10)
    map_bucket(tmp_path, meta)
    (tmp_path / meta.path).unlink()
    with pytest.raises(BucketMissing, match="lost are 10 rows of store s"):
        map_bucket(tmp_path, meta)
    forget_buckets(tmp_path, set())


def test_a_file_that_was_only_touched_is_compared_and_taken(tmp_path: Path) -> None:
    meta = bucket_of(tmp_path, 10)
    first = map_bucket(tmp_path, meta)
    (tmp_path / meta.path).touch()
    assert map_bucket(tmp_path, meta).file.column("v") == first.file.column("v")
    forget_buckets(tmp_path, set())


def test_places_are_found_once_for_a_plan_and_again_for_another() -> None:
    places, asked = KnownPlaces(), []

    def find(number: int) -> int | None:
        asked.append(number)
        return None if number == 2 else 10 + number + 100 * plan

    numbers = np.array([0, 2, 3])
    for plan, asks in enumerate([[Ask(0, TRUE, 0, str(each)) for each in range(4)] for _ in range(2)]):
        first = places.of(asks, numbers, find)
        assert first[[0, 2]].tolist() == [10 + 100 * plan, 13 + 100 * plan]
        asked.clear()
        assert places.of(asks, numbers, find)[[0, 2]].tolist() == first[[0, 2]].tolist()
        # Where it has none now, it may have one later.
        assert asked == [2]
