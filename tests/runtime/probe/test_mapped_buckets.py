"""Workers keep buckets mapped between batches; a map shows what is written to its file, so they look for that."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dovetail.core.errors import BucketCorrupt, BucketMissing
from dovetail.kernels.word_bits import WORD_BITS, has_bit
from dovetail.lowering.flat_plan import Ask
from dovetail.query.expression import TRUE, Call, Column, Expression, Literal
from dovetail.query.types import BIGINT, BOOLEAN
from dovetail.runtime.batch_task import MergeTask
from dovetail.runtime.derived import FORGOTTEN_AFTER, BatchClock, Derived
from dovetail.runtime.probe.mapped_bucket import KnownPlaces, forget_buckets, map_bucket
from dovetail.runtime.source.merge_operator import run_merge
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
    places, asked = KnownPlaces(BatchClock()), []

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


def above(bound: int) -> Expression:
    return Call("gt", (Column("row", "v", BIGINT), Literal(bound, BIGINT)), BOOLEAN)


def test_what_nobody_asks_for_any_more_is_forgotten() -> None:
    clock = BatchClock()
    derived, made = Derived(clock), []

    def make(key: str) -> str:
        made.append(key)
        return key

    derived.of("gone", lambda: make("gone"))
    for clock.batch in range(1, FORGOTTEN_AFTER + 1):
        assert derived.of("stays", lambda: make("stays")) == "stays"
        derived.forget_unused()
    assert made == ["gone", "stays"]
    assert list(derived) == ["stays"]
    derived.of("gone", lambda: make("gone"))
    assert made == ["gone", "stays", "gone"]


def test_bits_of_selections_that_ended_are_forgotten_and_found_again(tmp_path: Path) -> None:
    meta = bucket_of(tmp_path, 200)
    bucket = map_bucket(tmp_path, meta)
    places = {bound: bucket.place(above(bound), f"v > {bound}", "UTC") for bound in range(130)}
    asks = [Ask(0, above(0), 0, "v > 0")]
    for _ in range(2 * FORGOTTEN_AFTER):
        forget_buckets(tmp_path, {meta.key})
        # Another plan with every batch; it still has one that lies in the first word.
        bucket.known_places.of(list(asks), np.array([0]), lambda _: bucket.place(above(0), "v > 0", "UTC"))
    kept = [int(word.sum()) > 0 for word in bucket.words]
    assert kept == [True, False, True], "the last word still takes bits"
    assert bucket.place(above(0), "v > 0", "UTC") == places[0]
    again = bucket.place(above(70), "v > 70", "UTC")
    assert again != places[70]
    assert has_bit(bucket.words[again // WORD_BITS], again).tolist() == [value > 70 for value in range(200)]
    forget_buckets(tmp_path, set())


def test_a_plan_that_goes_on_keeps_its_bits(tmp_path: Path) -> None:
    meta = bucket_of(tmp_path, 200)
    bucket = map_bucket(tmp_path, meta)
    asks = [Ask(0, above(bound), 0, f"v > {bound}") for bound in range(64)]
    numbers = np.arange(64)
    for _ in range(3 * FORGOTTEN_AFTER):
        found = bucket.known_places.of(
            asks, numbers, lambda number: bucket.place(above(number), f"v > {number}", "UTC")
        )
        for bound in (0, 63):
            bits = has_bit(bucket.words[found[bound] // WORD_BITS], int(found[bound]))
            assert bits.sum() == 199 - bound
        forget_buckets(tmp_path, {meta.key})
    forget_buckets(tmp_path, set())


def test_a_bit_that_rotted_in_a_file_of_this_process_is_not_copied_into_another(tmp_path: Path) -> None:
    meta = bucket_of(tmp_path, 200)
    times = (tmp_path / meta.path).stat()
    flip(tmp_path / meta.path)
    os.utime(tmp_path / meta.path, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(BucketCorrupt, match="other bytes"):
        run_merge(tmp_path, 9, MergeTask("s", (meta,), 0), None)
