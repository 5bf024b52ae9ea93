from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.stats.estimate import Estimate, Origin
from dovetail.stats.key_sketch import SKETCH_CODES, KeySketch, join_sketches
from dovetail.stats.key_stats import SKETCHED_BATCHES, KeysSeen, KeyStats

FEW_CODES = st.sets(st.integers(0, (1 << 64) - 1), max_size=SKETCH_CODES - 1)


def sketch_of(codes: set[int]) -> KeySketch:
    return KeySketch(tuple(sorted(codes)[:SKETCH_CODES]))


def random_codes(chance: random.Random, count: int) -> set[int]:
    return {chance.getrandbits(64) for _ in range(count)}


def seen(
    rows_by_group: tuple[int, ...], heavy: dict[int, int] | None = None, codes: set[int] | None = None
) -> KeysSeen:
    return KeysSeen(sum(rows_by_group), rows_by_group, heavy or {}, sketch_of(codes or set()))


@given(FEW_CODES)
def test_few_distinct_keys_are_counted_exactly(codes: set[int]) -> None:
    assert sketch_of(codes).distinct == Estimate(float(len(codes)), Origin.EXACT)


@pytest.mark.parametrize("count", [SKETCH_CODES + 50, 3_000, 40_000])
def test_the_error_bar_of_many_distinct_keys_holds_for_most_seeds(count: int) -> None:
    held = 0
    for seed in range(20):
        found = sketch_of(random_codes(random.Random(seed), count)).distinct
        assert found.origin is Origin.ESTIMATED
        held += abs(found.value - count) <= found.relative_error * count
    assert held >= 17


@given(st.lists(st.sets(st.integers(0, 400), max_size=300), max_size=4))
def test_joined_sketches_are_the_sketch_of_all_keys(parts: list[set[int]]) -> None:
    assert join_sketches([sketch_of(part) for part in parts]) == sketch_of({code for part in parts for code in part})


def test_a_sketch_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="at most"):
        KeySketch(tuple(range(SKETCH_CODES + 1)))


def test_buckets_of_one_batch_add_up() -> None:
    whole = seen((1, 2), {5: 2}, {1}) + seen((3, 4), {5: 3, 6: 4}, {2})
    assert whole == seen((4, 6), {5: 5, 6: 4}, {1, 2})


def test_rows_by_group_follow_the_newest_batches() -> None:
    stats = KeyStats().folded(seen((8, 0)), 0).folded(seen((0, 8)), 1).folded(seen((0, 8)), 2)
    assert stats.rows_by_group == (2.0, 6.0)
    assert stats.folded(seen((0, 0)), 3) == stats


def test_another_number_of_key_groups_starts_anew() -> None:
    stats = KeyStats().folded(seen((8, 0)), 0).folded(seen((1, 1, 1, 1)), 1)
    assert stats.rows_by_group == (1.0, 1.0, 1.0, 1.0)


def test_a_key_that_is_frequent_no_more_is_forgotten() -> None:
    stats = KeyStats().folded(seen((100,), {7: 50}), 0)
    assert stats.heavy_share_by_code == {7: 0.5}
    stats = stats.folded(seen((100,), {8: 20}), 1)
    assert stats.heavy_share_by_code == {7: 0.25, 8: 0.1}
    for batch in range(2, 12):
        stats = stats.folded(seen((100,)), batch)
    assert stats.heavy_share_by_code == {}


def test_distinct_keys_are_those_of_the_batches_that_are_still_held() -> None:
    stats = KeyStats()
    for batch in range(4):
        stats = stats.folded(seen((10,), codes={batch, 99}), batch)
    assert stats.distinct(0) == Estimate(5.0, Origin.EXACT)
    assert stats.distinct(2) == Estimate(3.0, Origin.EXACT)
    assert stats.distinct(4) is None


def test_only_the_newest_batches_are_remembered() -> None:
    stats = KeyStats()
    for batch in range(SKETCHED_BATCHES * 2):
        stats = stats.folded(seen((10,), codes={batch}), batch)
    assert stats.distinct(0) == Estimate(float(SKETCHED_BATCHES), Origin.EXACT)
