from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.kernels.match.entry_tables import TableEntries
from dovetail.kernels.match.match_pairs import (
    LegBounds,
    Pairs,
    ProbeRows,
    StoredBuckets,
    StoredRows,
    match_pairs,
    one_bucket,
)
from dovetail.kernels.match.special_values import ALL_PASS, NO_LOWER, NO_UPPER, NONE_PASS, NULL_TIME
from dovetail.kernels.word_bits import lie_at

I64 = npt.NDArray[np.int64]
WORDS = 2

# Few: collisions and long runs of one code are certain. Some differ in their top bits, some in their lowest.
CODE = st.sampled_from([0, 1, 2, 1 << 61, (1 << 61) + 1, 5 << 61, 7 << 61, (1 << 64) - 1])
CODES = st.lists(CODE, max_size=30).map(sorted)
# Against one probe row these are many more, so that positions are searched.
MANY_CODES = st.lists(CODE, min_size=20, max_size=60).map(sorted)
SIZES = st.tuples(CODES, CODES) | st.tuples(st.lists(CODE, max_size=2).map(sorted), MANY_CODES)


def plain_probe(codes: list[int]) -> ProbeRows:
    return ProbeRows(
        np.array(codes, np.uint64), np.ones((1, len(codes)), np.uint64), np.zeros((0, len(codes)), np.int64)
    )


def plain_stored(codes: list[int]) -> StoredRows:
    count = len(codes)
    return StoredRows(
        codes=np.array(codes, np.uint64),
        rows=np.arange(count, dtype=np.uint32),
        times=np.zeros(0, np.int64),
        time_range=(int(NO_LOWER), int(NO_UPPER)),
        places=np.array([ALL_PASS], np.int32),
        word_addresses=np.zeros((1, 2), np.uint64),
    )


NO_BOUNDS = LegBounds(np.zeros((1, 0), np.int64), np.zeros((1, 0), np.int64))


def match(probe: list[int], stored: list[int], max_pairs: int = 1000) -> list[Pairs]:
    return list(match_pairs(plain_probe(probe), one_bucket(plain_stored(stored)), NO_BOUNDS, max_pairs=max_pairs))


def matched(pieces: list[Pairs]) -> list[tuple[int, int]]:
    return [(int(i), int(row)) for piece in pieces for i, row in zip(piece.probe_idx, piece.stored_refs, strict=True)]


@given(SIZES, st.integers(1, 40))
def test_pairs_are_those_of_nested_loops_in_their_order(sizes: tuple[list[int], list[int]], max_pairs: int) -> None:
    probe, stored = sizes
    expected = [(i, j) for i, a in enumerate(probe) for j, b in enumerate(stored) if a == b]
    assert matched(match(probe, stored, max_pairs)) == expected


def test_a_leg_that_stops_leaves_the_pairs_of_the_others() -> None:
    probe = ProbeRows(np.zeros(4, np.uint64), np.array([[1, 3, 2, 1]], np.uint64), np.zeros((0, 4), np.int64))
    stored = replace(plain_stored([0, 0, 0]), places=np.array([ALL_PASS, ALL_PASS], np.int32))
    bounds = LegBounds(np.zeros((2, 0), np.int64), np.zeros((2, 0), np.int64))
    pieces = match_pairs(probe, one_bucket(stored), bounds, max_pairs=3)
    assert matched([next(pieces)]) == [(0, 0), (0, 1), (0, 2)]
    probe.stop([0])
    rest = list(pieces)
    assert matched(rest) == [(row, position) for row in (1, 2) for position in range(3)]
    assert {int(bits) for piece in rest for bits in piece.bits[0]} == {2}
    # Rows that nobody wants any more are not looked at.
    assert sum(piece.near_count for piece in rest) == 6


def test_a_leg_that_stops_wants_nothing_of_the_rows_of_some_legs_either() -> None:
    rows = ProbeRows(np.zeros(3, np.uint64), np.array([[1, 3, 2]], np.uint64), np.zeros((0, 3), np.int64))
    part = rows.wanted_by(np.array([1], np.uint64))
    assert part.bits.tolist() == [[1, 1, 0]]
    assert part.wanted_mask is not None
    rows.stop([0])
    assert (rows.bits.tolist(), part.bits.tolist()) == ([[0, 2, 2]], [[0, 0, 0]])
    assert (part.stops, part.wanted_mask.any()) == (1, False)


def test_when_all_legs_stopped_nothing_more_is_matched() -> None:
    probe = plain_probe([5, 5, 5])
    pieces = match_pairs(probe, one_bucket(plain_stored([5, 5])), NO_BOUNDS, max_pairs=2)
    next(pieces)
    probe.stop([0])
    assert matched(list(pieces)) == []


@dataclass(frozen=True)
class Case:
    """Probe and stored rows, and what their legs ask; `words[w, row]` are the stored rows' selection bits."""

    probe: ProbeRows
    stored: StoredRows
    bounds: LegBounds
    words: npt.NDArray[np.uint64]

    def wanting_legs(self, i: int, entry: int) -> set[int]:
        return {leg for leg in range(len(self.stored.places)) if self._wants(leg, i, int(self.stored.rows[entry]))}

    def _wants(self, leg: int, i: int, row: int) -> bool:
        place = int(self.stored.places[leg])
        passes = place == ALL_PASS or (place >= 0 and int(self.words[place // 64, row]) >> (place % 64) & 1 == 1)
        wants_probe_row = int(self.probe.bits[leg // 64, i]) >> (leg % 64) & 1 == 1
        members = range(self.bounds.member_count)
        return passes and wants_probe_row and all(self._holds(leg, member, i, row) for member in members)

    def _holds(self, leg: int, member: int, i: int, row: int) -> bool:
        low, high = self.bounds.lower[leg, member], self.bounds.upper[leg, member]
        if low == NO_LOWER and high == NO_UPPER:
            return True
        time, other = int(self.stored.times[row]), int(self.probe.times[member, i])
        return NULL_TIME not in (time, other) and low <= time - other <= high


@st.composite
def cases(draw: st.DrawFn) -> Case:
    probe_codes, stored_codes = draw(SIZES)
    leg_count = draw(st.sampled_from([1, 2, 64, 65]))
    member_count = draw(st.integers(0, 2))
    generator = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    stored_count = len(stored_codes)
    words = generator.integers(0, 1 << 64, (WORDS, max(stored_count, 1)), np.uint64)
    if draw(st.booleans()):
        # As in a bucket: the words of a row lie together.
        words = np.asfortranarray(words)
    times = generator.choice([NULL_TIME, -2, 0, 1, 3], stored_count)
    known = [int(time) for time in times if time != NULL_TIME]
    bits = generator.integers(0, 1 << 64, (-(-leg_count // 64), len(probe_codes)), np.uint64)
    bits[-1] &= np.uint64((1 << (leg_count - 1) % 64 + 1) - 1)
    bits[:, generator.random(len(probe_codes)) < 0.2] = 0
    lower = generator.choice([NO_LOWER, -2, 0], (leg_count, member_count))
    upper = generator.choice([NO_UPPER, 0, 2], (leg_count, member_count))
    if draw(st.booleans()):
        lower[:], upper[:] = lower[0], upper[0]
    return Case(
        ProbeRows(
            np.array(probe_codes, np.uint64),
            bits,
            generator.choice([NULL_TIME, -1, 0, 2], (member_count, len(probe_codes))),
        ),
        StoredRows(
            codes=np.array(stored_codes, np.uint64),
            rows=generator.permutation(stored_count).astype(np.uint32),
            times=times,
            time_range=(min(known), max(known)) if known else (int(NO_LOWER), int(NO_UPPER)),
            places=generator.integers(NONE_PASS, 64 * WORDS, leg_count).astype(np.int32),
            word_addresses=np.array([lie_at(word) for word in words], np.uint64),
        ),
        LegBounds(lower, upper),
        words,
    )


@given(cases(), st.integers(1, 40))
def test_pairs_and_their_legs_are_those_of_a_plain_model(case: Case, max_pairs: int) -> None:
    found: dict[tuple[int, int], set[int]] = {}
    for piece in match_pairs(case.probe, one_bucket(case.stored), case.bounds, max_pairs=max_pairs):
        assert len(piece.probe_idx) <= max_pairs
        for i, row, bits in zip(piece.probe_idx, piece.stored_refs, piece.bits.T, strict=True):
            legs = {leg for leg in range(len(case.stored.places)) if int(bits[leg // 64]) >> (leg % 64) & 1}
            assert legs
            assert not legs & found.get((int(i), int(row)), set()), "a leg has a pair once"
            found.setdefault((int(i), int(row)), set()).update(legs)
    expected = {
        (i, int(case.stored.rows[entry])): legs
        for i, code in enumerate(case.probe.codes)
        for entry, stored_code in enumerate(case.stored.codes)
        if code == stored_code and (legs := case.wanting_legs(i, entry))
    }
    assert found == expected


@given(cases(), st.integers(1, 40))
def test_near_pairs_are_counted_whatever_their_selections(case: Case, max_pairs: int) -> None:
    """Each word of legs looks by itself, within what some of its own legs accept."""

    def is_near(word: int, i: int, row: int) -> bool:
        own = slice(64 * word, 64 * word + 64)
        for member in range(case.bounds.member_count):
            lower, upper = case.bounds.lower[own, member].min(), case.bounds.upper[own, member].max()
            if (lower, upper) != (NO_LOWER, NO_UPPER):
                time, other = int(case.stored.times[row]), int(case.probe.times[member, i])
                if NULL_TIME in (time, other) or not lower <= time - other <= upper:
                    return False
        return True

    def is_looked_at(word: int, i: int) -> bool:
        """Nobody looks for a row that no leg wants, nor at a bucket of which no leg takes any."""
        takes_any = (case.stored.places[64 * word : 64 * word + 64] != NONE_PASS).any()
        return bool(case.probe.bits[word, i]) and bool(takes_any)

    pieces = list(match_pairs(case.probe, one_bucket(case.stored), case.bounds, max_pairs=max_pairs))
    assert sum(piece.near_count for piece in pieces) == sum(
        code == stored_code and is_near(word, i, int(case.stored.rows[entry]))
        for word in range(len(case.probe.bits))
        for i, code in enumerate(case.probe.codes)
        if is_looked_at(word, i)
        for entry, stored_code in enumerate(case.stored.codes)
    )


@pytest.mark.parametrize(("probe", "stored"), [([], [1, 2]), ([1, 2], []), ([], []), ([1, 3], [2, 4])])
def test_nothing_comes_out_where_nothing_meets(probe: list[int], stored: list[int]) -> None:
    assert matched(match(probe, stored)) == []


def test_codes_use_all_64_bits() -> None:
    top = (1 << 64) - 1
    assert matched(match([0, top - 1, top], [0, top])) == [(0, 0), (2, 1)]


def test_pieces_hold_at_most_max_pairs() -> None:
    pieces = match([1, 1, 1, 2, 2], [1, 1, 2, 2, 2], max_pairs=5)
    assert [len(piece.probe_idx) for piece in pieces] == [5, 5, 2]
    assert [len(piece.probe_idx) for piece in match([1, 2], [1] * 10 + [2], max_pairs=3)] == [3, 3, 3, 2]


@given(st.lists(st.tuples(cases(), st.booleans()), min_size=1, max_size=5), st.integers(1, 40), st.integers(1, 3))
def test_many_buckets_are_matched_as_one_after_the_other(
    drawn: list[tuple[Case, bool]], max_pairs: int, step: int
) -> None:
    """The rows, legs and bounds of the first case, and the buckets of all; some of which are not to be seen."""
    probe, bounds = drawn[0][0].probe, drawn[0][0].bounds
    legs = len(drawn[0][0].stored.places)
    entries: list[TableEntries | None] = []
    places = np.full((legs, len(drawn)), ALL_PASS, np.int32)
    alone = []
    each_alone = []
    for ordinal, (case, is_visible) in enumerate(drawn):
        # Dealt out: every step-th entry.
        own = np.resize(case.stored.places, legs)
        stored = replace(case.stored, codes=case.stored.codes[::step], rows=case.stored.rows[::step], places=own)
        each_alone.append(one_bucket(stored))
        places[:, ordinal] = own
        entries.append(each_alone[-1].entries[0] if is_visible else None)
        if is_visible:
            alone += found_in(match_pairs(probe, each_alone[-1], bounds, max_pairs=1000), ordinal)
    buckets = StoredBuckets(
        entries,
        np.concatenate([each.time_addresses for each in each_alone]),
        [each.time_ranges[0] for each in each_alone],
        places,
        np.concatenate([each.word_addresses for each in each_alone]),
    )
    assert sorted(found_in(match_pairs(probe, buckets, bounds, max_pairs=max_pairs))) == sorted(alone)


def found_in(pieces: Iterator[Pairs], ordinal: int = 0) -> list[tuple[int, int, tuple[int, ...]]]:
    return [
        (int(i), int(ref) | ordinal << 32, tuple(bits.tolist()))
        for piece in pieces
        for i, ref, bits in zip(piece.probe_idx, piece.stored_refs, piece.bits.T, strict=True)
    ]


@pytest.mark.parametrize(("stored_time", "member_time"), [(NULL_TIME, 2), (NULL_TIME, -1), (2, NULL_TIME)])
@pytest.mark.parametrize(("lower", "upper"), [(-2, NO_UPPER), (NO_LOWER, 2), (-2, 2)])
def test_a_null_time_is_for_legs_without_bounds_only(
    stored_time: int, member_time: int, lower: int, upper: int
) -> None:
    """Leg 0 has no bounds, so that nothing is left out for both."""
    probe = ProbeRows(np.zeros(1, np.uint64), np.array([[3]], np.uint64), np.array([[member_time]], np.int64))
    places = np.array([ALL_PASS, ALL_PASS], np.int32)
    stored = replace(plain_stored([0]), times=np.array([stored_time], np.int64), places=places)
    bounds = LegBounds(np.array([[NO_LOWER], [lower]]), np.array([[NO_UPPER], [upper]]))
    (piece,) = match_pairs(probe, one_bucket(stored), bounds, max_pairs=10)
    assert piece.bits.tolist() == [[1]]


@pytest.mark.parametrize("max_pairs", [1, 2, 3, 1000])
def test_every_bucket_is_matched_from_the_first_row_on(max_pairs: int) -> None:
    probe, alone = plain_probe([1, 1, 2]), [one_bucket(plain_stored(codes)) for codes in ([1, 2, 2], [1], [1, 2])]
    buckets = StoredBuckets(
        [each.entries[0] for each in alone],
        np.concatenate([each.time_addresses for each in alone]),
        [each.time_ranges[0] for each in alone],
        np.full((1, len(alone)), ALL_PASS, np.int32),
        np.concatenate([each.word_addresses for each in alone]),
    )
    found = matched(list(match_pairs(probe, buckets, NO_BOUNDS, max_pairs=max_pairs)))
    met = {0: [(0, 0), (1, 0), (2, 1), (2, 2)], 1: [(0, 0), (1, 0)], 2: [(0, 0), (1, 0), (2, 1)]}
    assert sorted(found) == sorted((row, bucket << 32 | entry) for bucket, of in met.items() for row, entry in of)


def test_who_finds_nothing_for_long_is_asked_now_and_then() -> None:
    """Else nobody would look at the time."""
    count = (1 << 22) + 10
    probe = ProbeRows(
        np.arange(1, 2 * count, 2, dtype=np.uint64), np.ones((1, count), np.uint64), np.zeros((0, count), np.int64)
    )
    pieces = list(match_pairs(probe, one_bucket(plain_stored([2, 4, 6])), NO_BOUNDS, max_pairs=10))
    assert [len(piece.probe_idx) for piece in pieces] == [0, 0]


def test_the_probe_rows_bits_are_not_changed() -> None:
    probe, stored = plain_probe([1]), plain_stored([1])
    stored.places[0] = NONE_PASS
    assert matched(list(match_pairs(probe, one_bucket(stored), NO_BOUNDS, max_pairs=10))) == []
    assert probe.bits.tolist() == [[1]]
