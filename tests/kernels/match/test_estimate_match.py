from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.kernels.match.estimate_match import (
    IndexEntries,
    MatchEstimate,
    SliceRule,
    estimate_match,
    slice_index,
    slice_rule,
)
from dovetail.kernels.match.hash_keys import hash_keys
from dovetail.kernels.match.special_values import NULL_TIME

I64 = npt.NDArray[np.int64]
NO_HEAVY = np.zeros(0, np.uint64)


@dataclass(frozen=True)
class Side:
    keys: I64
    times: I64

    def buckets(self, count: int, *, is_timed: bool = True) -> list[IndexEntries]:
        pieces = zip(np.array_split(self.keys, count), np.array_split(self.times, count), strict=True)
        return [_entries(keys, times if is_timed else None) for keys, times in pieces]


def _entries(keys: I64, times: I64 | None) -> IndexEntries:
    codes = hash_keys([pa.array(keys)]).codes
    order = np.argsort(codes, kind="stable")
    return IndexEntries(codes[order], order.astype(np.uint32), times, len(keys))


def near_pairs(a: Side, b: Side, lower_us: int | None, upper_us: int | None, *, same_key: bool) -> int:
    """Counted key by key among sorted times: all pairs at once would be millions."""
    is_timed = lower_us is not None or upper_us is not None
    known = [side.times != NULL_TIME if is_timed else np.ones(len(side.times), np.bool_) for side in (a, b)]
    groups = np.intersect1d(a.keys, b.keys).tolist() if same_key else [None]
    count = 0
    for key in groups:
        times, others = (
            side.times[is_known if key is None else is_known & (side.keys == key)]
            for side, is_known in zip((a, b), known, strict=True)
        )
        others = np.sort(others)
        ends = len(others) if upper_us is None else np.searchsorted(others, times + upper_us, "right")
        begins = 0 if lower_us is None else np.searchsorted(others, times + lower_us)
        count += int(np.broadcast_to(np.maximum(ends - begins, 0), times.shape).sum())
    return count


ROWS = st.lists(st.tuples(st.integers(0, 5), st.sampled_from([NULL_TIME, -3, 0, 1, 2, 9])), max_size=30)
BOUND = st.none() | st.integers(-4, 4)


def side_of(rows: list[tuple[int, int]]) -> Side:
    return Side(np.array([key for key, _ in rows], np.int64), np.array([time for _, time in rows], np.int64))


@given(ROWS, ROWS, BOUND, BOUND, st.integers(1, 3))
def test_small_indexes_are_counted_exactly(
    a_rows: list[tuple[int, int]],
    b_rows: list[tuple[int, int]],
    lower_us: int | None,
    upper_us: int | None,
    bucket_count: int,
) -> None:
    a, b = side_of(a_rows), side_of(b_rows)
    is_timed = lower_us is not None or upper_us is not None
    a_buckets, b_buckets = (side.buckets(bucket_count, is_timed=is_timed) for side in (a, b))
    rule = slice_rule(a_buckets, b_buckets)
    found = estimate_match(slice_index(a_buckets, rule), slice_index(b_buckets, rule), lower_us, upper_us)
    assert found.matches == near_pairs(a, b, lower_us, upper_us, same_key=True)
    assert found.pairs == pytest.approx(near_pairs(a, b, lower_us, upper_us, same_key=False))


def estimated(a: Side, b: Side, bounds: tuple[int, int] | None, max_entries: int) -> MatchEstimate:
    a_buckets, b_buckets = a.buckets(3, is_timed=bounds is not None), b.buckets(2, is_timed=bounds is not None)
    rule = slice_rule(a_buckets, b_buckets, max_entries)
    return estimate_match(slice_index(a_buckets, rule), slice_index(b_buckets, rule), *(bounds or (None, None)))


def keys_of(kind: str, chance: np.random.Generator, count: int) -> I64:
    if kind == "uniform":
        return chance.integers(0, 3000, count)
    if kind == "skewed":
        return np.minimum(chance.zipf(1.5, count), 10**6)
    if kind == "hundreds":
        return chance.integers(0, 700, count)
    return chance.integers(0, 20, count)


@pytest.mark.parametrize("bounds", [None, (-200, 300)])
@pytest.mark.parametrize("kind", ["uniform", "skewed", "hundreds", "few keys"])
def test_the_error_bar_of_a_slice_holds_for_most_seeds(kind: str, bounds: tuple[int, int] | None) -> None:
    held, errors = 0, []
    for seed in range(20):
        chance = np.random.default_rng(seed)
        a, b = (Side(keys_of(kind, chance, n), chance.integers(0, 2000, n)) for n in (4000, 3000))
        lower_us, upper_us = bounds or (None, None)
        truth = near_pairs(a, b, lower_us, upper_us, same_key=True)
        allowed = near_pairs(a, b, lower_us, upper_us, same_key=False)
        found = estimated(a, b, bounds, max_entries=800)
        errors.append(found.relative_error)
        # Both the matches and the chance that a pair matches.
        probability, true_probability = found.matches / found.pairs, truth / allowed
        held += abs(probability - true_probability) <= found.relative_error * true_probability + 1e-12
    assert held >= 17
    assert np.mean(errors) < 0.4


def test_a_frequent_key_is_counted_wherever_its_code_lies() -> None:
    for key in range(20):
        keys = np.concatenate([np.full(3000, key), np.arange(100, 3100)])
        side = Side(keys, np.zeros(6000, np.int64))
        found = estimated(side, side, None, max_entries=800)
        assert found.matches == pytest.approx(3000**2, rel=0.01)


def test_no_match_in_the_slice_is_not_reported_as_certainty() -> None:
    a, b = Side(np.arange(5000), np.zeros(5000, np.int64)), Side(np.arange(5000, 10_000), np.zeros(5000, np.int64))
    found = estimated(a, b, None, max_entries=500)
    assert found.matches >= 0.5 * 10
    assert found.relative_error == 1.0


def test_slices_of_different_rules_are_not_compared() -> None:
    buckets = Side(np.arange(3), np.zeros(3, np.int64)).buckets(1)
    one, other = SliceRule(1 << 60, NO_HEAVY), SliceRule(1 << 61, NO_HEAVY)
    with pytest.raises(ValueError, match="one rule"):
        estimate_match(slice_index(buckets, one), slice_index(buckets, other))
