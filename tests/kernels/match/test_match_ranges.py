from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.kernels.match.match_pairs import LegBounds, ProbeRows, StoredRows
from dovetail.kernels.match.match_ranges import (
    ZONE,
    Checked,
    EntryValues,
    OwnRange,
    Pairs,
    Ranges,
    match_ranges,
    ranges_of_bounds,
)
from dovetail.kernels.match.order_values import HIGHEST, LOWEST, RowRanges
from dovetail.kernels.match.special_values import ALL_PASS, NO_LOWER, NO_UPPER, NULL_TIME
from tests.support.examples import examples

EXTREMES = st.sampled_from([int(LOWEST), int(LOWEST) + 1, int(HIGHEST)])
VALUES = st.integers(-5, 5) | EXTREMES
NO_BOUNDS = LegBounds(np.zeros((2, 0), np.int64), np.zeros((2, 0), np.int64))


@dataclass(frozen=True)
class Case:
    """Probe rows (code, ranges of both legs over the order, range of a second expression, bits) and stored entries."""

    has_keys: bool
    is_searched: bool
    probe: list[tuple[int, tuple[tuple[int, int], tuple[int, int]], tuple[int, int], int]]
    stored: list[tuple[int, int, int | None]]
    max_pairs: int
    step: int


def ranges_of(ends: list[tuple[int, int]]) -> RowRanges:
    pairs = np.array(ends, np.int64).reshape(-1, 2)
    return RowRanges(np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1]))


RANGE = st.tuples(VALUES, VALUES)
CASES = st.builds(
    Case,
    has_keys=st.booleans(),
    is_searched=st.booleans(),
    probe=st.lists(st.tuples(st.integers(0, 3), st.tuples(RANGE, RANGE), RANGE, st.integers(0, 3)), max_size=12),
    stored=st.lists(st.tuples(st.integers(0, 3), VALUES, VALUES | st.none()), max_size=40)
    | st.lists(st.tuples(st.just(1), st.integers(-3, 3), st.integers(-3, 3)), min_size=3 * ZONE, max_size=4 * ZONE),
    max_pairs=st.sampled_from([1, 3, 1000]),
    step=st.sampled_from([1, 2]),
)


def found(case: Case) -> list[tuple[int, int, int]]:
    probe_rows = sorted(case.probe, key=lambda row: row[0] if case.has_keys else 0)
    stored = sorted(case.stored, key=lambda entry: (entry[0] if case.has_keys else 0, entry[1]))
    # Every second place of a longer array: routing deals out views.
    codes = np.repeat(np.array([e[0] if case.has_keys else 0 for e in stored], np.uint64), case.step)[:: case.step]
    orders = np.repeat(np.array([e[1] for e in stored], np.int64), case.step)[:: case.step]
    seconds = EntryValues(
        np.array([0 if e[2] is None else e[2] for e in stored], np.int64),
        np.array([e[2] is None for e in stored]) if any(e[2] is None for e in stored) else None,
    )
    probe = ProbeRows(
        np.array([row[0] if case.has_keys else 0 for row in probe_rows], np.uint64),
        np.array([[row[3] for row in probe_rows]], np.uint64),
        np.zeros((0, len(probe_rows)), np.int64),
    )
    own = [ranges_of([row[1][leg] for row in probe_rows]) for leg in range(2)]
    loosest = RowRanges(np.minimum(own[0].lower, own[1].lower), np.maximum(own[0].upper, own[1].upper))
    ranges = Ranges(
        loosest if case.is_searched else None,
        orders,
        [Checked(ranges_of([row[2] for row in probe_rows]), seconds)],
        [OwnRange(np.array([1 << leg], np.uint64), own[leg], EntryValues(orders, None)) for leg in range(2)],
    )
    pieces = list(
        match_ranges(
            probe,
            stored_rows(codes),
            NO_BOUNDS,
            ranges,
            has_keys=case.has_keys,
            max_pairs=case.max_pairs,
        )
    )
    assert all(piece.near_count <= case.max_pairs + ZONE for piece in pieces)
    return sorted(
        (int(i), int(row), int(bits))
        for piece in pieces
        for i, row, bits in zip(piece.probe_idx, piece.stored_refs, piece.bits[0], strict=True)
    )


def stored_rows(codes: np.ndarray) -> StoredRows:
    return StoredRows(
        codes=codes,
        rows=np.arange(len(codes), dtype=np.uint32),
        times=np.zeros(0, np.int64),
        time_range=(int(NO_LOWER), int(NO_UPPER)),
        places=np.array([ALL_PASS, ALL_PASS], np.int32),
        word_addresses=np.zeros((1, 2), np.uint64),
    )


def expected(case: Case) -> list[tuple[int, int, int]]:
    probe_rows = sorted(case.probe, key=lambda row: row[0] if case.has_keys else 0)
    stored = sorted(case.stored, key=lambda entry: (entry[0] if case.has_keys else 0, entry[1]))
    pairs = []
    for i, (code, own, second, bits) in enumerate(probe_rows):
        for row, (stored_code, order, value) in enumerate(stored):
            if (case.has_keys and code != stored_code) or value is None or not second[0] <= value <= second[1]:
                continue
            kept = bits & sum(1 << leg for leg in range(2) if own[leg][0] <= order <= own[leg][1])
            if kept:
                pairs.append((i, row, kept))
    return sorted(pairs)


@examples(2)
@given(case=CASES)
def test_pairs_are_those_of_a_nested_loop(case: Case) -> None:
    assert found(case) == expected(case)


def everything(probe_count: int, stored_count: int, max_pairs: int) -> tuple[ProbeRows, Iterator[Pairs]]:
    probe = ProbeRows(
        np.zeros(probe_count, np.uint64), np.full((1, probe_count), 3, np.uint64), np.zeros((0, probe_count), np.int64)
    )
    stored = stored_rows(np.zeros(stored_count, np.uint64))
    ranges = Ranges(None, np.zeros(0, np.int64))
    return probe, match_ranges(probe, stored, NO_BOUNDS, ranges, has_keys=False, max_pairs=max_pairs)


@pytest.mark.parametrize("max_pairs", [1, 7, 10, 11, 100])
def test_the_run_of_one_row_is_split_over_pieces(max_pairs: int) -> None:
    pieces = list(everything(3, 10, max_pairs)[1])
    assert all(len(piece.probe_idx) <= max_pairs for piece in pieces)
    pairs = [(int(i), int(row)) for piece in pieces for i, row in zip(piece.probe_idx, piece.stored_refs, strict=True)]
    assert pairs == [(i, row) for i in range(3) for row in range(10)]


def test_a_stopped_leg_gets_nothing_more_and_what_nobody_wants_is_not_walked() -> None:
    probe, pieces = everything(3, 10, 4)
    first = next(pieces)
    assert set(first.bits[0].tolist()) == {3}
    probe.stop([0])
    assert set(next(pieces).bits[0].tolist()) == {2}
    probe.stop([1])
    assert list(pieces) == []


def test_blocks_that_cannot_hold_a_partner_are_not_walked() -> None:
    values = EntryValues(np.repeat(np.arange(8), ZONE), None)
    lowest, highest = values.zones
    assert lowest.tolist() == highest.tolist() == list(range(8))


def test_time_bounds_are_ranges_of_the_event_time() -> None:
    times = np.array([[100, NULL_TIME, 100], [200, 200, NULL_TIME]])
    bounds = LegBounds(np.array([[-10, NO_LOWER], [-20, NO_LOWER]]), np.array([[5, 1], [7, 2]]))
    found = ranges_of_bounds(times, bounds)
    assert (found.lower[0], found.upper[0]) == (80, 107)
    assert (found.lower[1:] > found.upper[1:]).all()


def checked_pairs(values: list[int | None], wanted: tuple[int, int]) -> list[int]:
    """Which entries one row finds whose values lie within."""
    probe = ProbeRows(np.zeros(1, np.uint64), np.full((1, 1), 1, np.uint64), np.zeros((0, 1), np.int64))
    is_null = np.array([value is None for value in values])
    entries = EntryValues(np.array([value or 0 for value in values], np.int64), is_null if is_null.any() else None)
    ranges = Ranges(None, np.zeros(0, np.int64), [Checked(ranges_of([wanted]), entries)])
    stored = stored_rows(np.zeros(len(values), np.uint64))
    pieces = match_ranges(probe, stored, NO_BOUNDS, ranges, has_keys=False, max_pairs=1000)
    return [int(row) for piece in pieces for row in piece.stored_refs]


def test_a_block_whose_greatest_or_least_value_is_just_enough_is_walked() -> None:
    values: list[int | None] = [*range(ZONE), *range(ZONE, 2 * ZONE)]
    assert checked_pairs(values, (ZONE - 1, ZONE)) == [ZONE - 1, ZONE]
    assert checked_pairs(values, (2 * ZONE - 1, 5 * ZONE)) == [2 * ZONE - 1]
    assert checked_pairs(values, (-9, 0)) == [0]


def test_a_null_lies_within_no_range() -> None:
    assert checked_pairs([3, None, 0, None], (-5, 5)) == [0, 2]


def test_a_legs_own_time_bounds_hold_both_their_ends() -> None:
    """Two legs, of which one wants times from 3 before to 2 after, and the other any from 9 before to 9 after."""
    bounds = LegBounds(np.array([[-3], [-9]]), np.array([[2], [9]]))
    probe = ProbeRows(np.zeros(1, np.uint64), np.full((1, 1), 3, np.uint64), np.array([[100]]))
    times = np.array([96, 97, 102, 103, NULL_TIME])
    stored = StoredRows(
        codes=np.zeros(5, np.uint64),
        rows=np.arange(5, dtype=np.uint32),
        times=times,
        time_range=(96, 103),
        places=np.array([ALL_PASS, ALL_PASS], np.int32),
        word_addresses=np.zeros((1, 2), np.uint64),
    )
    pieces = list(match_ranges(probe, stored, bounds, Ranges(None, times), has_keys=False, max_pairs=100))
    found = {
        int(row): int(bits) for piece in pieces for row, bits in zip(piece.stored_refs, piece.bits[0], strict=True)
    }
    assert found == {0: 2, 1: 3, 2: 3, 3: 2}
