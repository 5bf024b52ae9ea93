from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.kernels.check_legs import (
    ALL_PASS,
    NO_LOWER,
    NO_UPPER,
    NONE_PASS,
    LegBounds,
    SelectionBits,
    bits_of_pairs,
    bits_of_rows,
    rows_of_legs,
)
from dovetail.kernels.gather_rows import make_refs
from dovetail.kernels.match_keys import NULL_TIME

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
NO_STORED_TIMES: I64 = np.zeros(0, np.int64)
ROWS_PER_BUCKET = 5
WORDS = 2


@dataclass(frozen=True)
class Buckets:
    """Selection words of some buckets, and where each leg finds its bit in each."""

    words: npt.NDArray[np.uint64]
    place: list[list[int]]

    @property
    def selections(self) -> SelectionBits:
        addresses = [
            [self.words[bucket, word].ctypes.data for word in range(WORDS)] for bucket in range(len(self.words))
        ]
        return SelectionBits(np.array(self.place, np.int32), np.array(addresses, np.uint64))

    def passes(self, leg: int, bucket: int, row: int) -> bool:
        at = self.place[leg][bucket]
        if at in (ALL_PASS, NONE_PASS):
            return at == ALL_PASS
        return bool(int(self.words[bucket, at // 64, row]) >> (at % 64) & 1)


@st.composite
def buckets(draw: st.DrawFn, leg_count: int) -> Buckets:
    bucket_count = draw(st.integers(1, 3))
    generator = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    words = generator.integers(0, 1 << 64, (bucket_count, WORDS, ROWS_PER_BUCKET), np.uint64)
    place = generator.integers(NONE_PASS, 64 * WORDS, (leg_count, bucket_count)).tolist()
    return Buckets(words, place)


def drawn_refs(data: st.DataObject, known: Buckets) -> tuple[list[tuple[int, int]], U64]:
    row = st.tuples(st.integers(0, len(known.words) - 1), st.integers(0, ROWS_PER_BUCKET - 1))
    rows = data.draw(st.lists(row, min_size=1, max_size=12))
    return rows, np.concatenate([make_refs(bucket, np.array([row])) for bucket, row in rows])


def legs_of(bits: np.uint64) -> set[int]:
    return {leg for leg in range(64) if int(bits) >> leg & 1}


@given(st.data(), st.sampled_from([1, 2, 7, 63, 64]))
def test_rows_have_the_bits_of_the_selections_they_pass(data: st.DataObject, leg_count: int) -> None:
    known = data.draw(buckets(leg_count))
    for bucket, words in enumerate(known.words):
        places = [place[bucket] for place in known.place]
        found = bits_of_rows(places, lambda word, words=words: words[word], ROWS_PER_BUCKET)  # type: ignore[misc]
        for row, bits in enumerate(found):
            assert legs_of(bits) == {leg for leg in range(leg_count) if known.passes(leg, bucket, row)}


@given(st.data(), st.sampled_from([1, 3, 64]), st.booleans())
def test_pairs_keep_the_legs_that_a_plain_model_keeps(data: st.DataObject, leg_count: int, has_bounds: bool) -> None:
    known = data.draw(buckets(leg_count))
    rows, refs = drawn_refs(data, known)
    generator = np.random.default_rng(data.draw(st.integers(0, 1 << 30)))
    probe_count, members = 4, 2
    probe_bits = generator.integers(0, 1 << leg_count, probe_count, np.uint64)
    probe_idx = generator.integers(0, probe_count, len(rows))
    times = generator.choice([NULL_TIME, -2, 0, 1, 3], len(rows))
    member_times = generator.choice([NULL_TIME, -1, 0, 2], (members, probe_count))
    lower = generator.choice([NO_LOWER, -2, 0], (leg_count, members))
    upper = generator.choice([NO_UPPER, 0, 2], (leg_count, members))
    bounds = LegBounds(member_times, lower, upper) if has_bounds else None
    found = bits_of_pairs(probe_bits, probe_idx, refs, known.selections, bounds, times)

    def holds(leg: int, member: int, pair: int) -> bool:
        low, high = lower[leg, member], upper[leg, member]
        if low == NO_LOWER and high == NO_UPPER:
            return True
        time, stored_time = member_times[member, probe_idx[pair]], times[pair]
        return NULL_TIME not in (time, stored_time) and low <= stored_time - time <= high

    for pair, (bucket, row) in enumerate(rows):
        wanted = {
            leg
            for leg in legs_of(probe_bits[probe_idx[pair]])
            if known.passes(leg, bucket, row)
            and (not has_bounds or all(holds(leg, member, pair) for member in range(members)))
        }
        assert legs_of(found[pair]) == wanted


@pytest.mark.parametrize(("place", "expected"), [(ALL_PASS, (1 << 64) - 1), (NONE_PASS, 0)])
def test_64_legs_that_all_or_none_pass_read_no_words(place: int, expected: int) -> None:
    nowhere = SelectionBits(np.full((64, 1), place, np.int32), np.zeros((1, 1), np.uint64))
    refs = make_refs(0, np.array([0, 1]))
    assert bits_of_rows([place] * 64, lambda _: np.zeros(0, np.uint64), 2).tolist() == [expected] * 2
    probe_bits = np.array([(1 << 64) - 1], np.uint64)
    pairs = bits_of_pairs(probe_bits, np.array([0, 0]), refs, nowhere, None, NO_STORED_TIMES)
    assert pairs.tolist() == [expected] * 2


def test_a_leg_without_bounds_takes_rows_without_a_time() -> None:
    everyone = SelectionBits(np.full((2, 1), ALL_PASS, np.int32), np.zeros((1, 1), np.uint64))
    bounds = LegBounds(np.array([[NULL_TIME]]), np.array([[NO_LOWER], [NO_LOWER]]), np.array([[NO_UPPER], [5]]))
    probe_bits = np.array([0b11], np.uint64)
    for time in (NULL_TIME, 0):
        bits = bits_of_pairs(
            probe_bits, np.array([0]), make_refs(0, np.array([0])), everyone, bounds, np.array([time], np.int64)
        )
        assert bits.tolist() == [0b01]


def test_both_ends_of_a_bound_count() -> None:
    everyone = SelectionBits(np.full((1, 1), ALL_PASS, np.int32), np.zeros((1, 1), np.uint64))
    bounds = LegBounds(np.array([[10]]), np.array([[-2]]), np.array([[3]]))
    times = np.array([7, 8, 13, 14], np.int64)
    refs = make_refs(0, np.zeros(4, np.int64))
    bits = bits_of_pairs(np.array([1], np.uint64), np.zeros(4, np.int64), refs, everyone, bounds, times)
    assert bits.tolist() == [0, 1, 1, 0]


def test_the_probe_rows_bits_are_not_changed() -> None:
    nobody = SelectionBits(np.full((1, 1), NONE_PASS, np.int32), np.zeros((1, 1), np.uint64))
    probe_bits = np.array([1], np.uint64)
    bits_of_pairs(probe_bits, np.array([0]), make_refs(0, np.array([0])), nobody, None, NO_STORED_TIMES)
    assert probe_bits.tolist() == [1]


@given(st.sampled_from([1, 2, 5, 64]), st.lists(st.integers(0, (1 << 64) - 1), max_size=20))
def test_every_leg_gets_its_rows_in_order(leg_count: int, words: list[int]) -> None:
    kept = [word & ((1 << leg_count) - 1) for word in words]
    rows = rows_of_legs(np.array(kept, np.uint64), leg_count)
    assert [own.tolist() for own in rows] == [
        [row for row, word in enumerate(kept) if word >> leg & 1] for leg in range(leg_count)
    ]
