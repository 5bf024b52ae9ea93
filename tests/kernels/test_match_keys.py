from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.kernels.match_keys import NULL_TIME, Pairs, TimeIntervals, match_keys

I64 = npt.NDArray[np.int64]

# Three bits: collisions and long runs of one code are certain.
CODES = st.lists(st.integers(0, 7), max_size=30).map(sorted)
TIMES = st.integers(-5, 5) | st.just(int(NULL_TIME))
BOUNDS = st.tuples(st.integers(-6, 6), st.integers(-6, 6))


def codes_of(values: list[int]) -> npt.NDArray[np.uint64]:
    return np.array(values, np.uint64)


def matched(pieces: list[Pairs]) -> list[tuple[int, int]]:
    return [(int(i), int(j)) for piece in pieces for i, j in zip(piece.probe_idx, piece.stored_idx, strict=True)]


def match(probe: list[int], stored: list[int], max_pairs: int = 1000) -> list[Pairs]:
    return list(match_keys(codes_of(probe), codes_of(stored), None, None, max_pairs=max_pairs))


@given(CODES, CODES, st.integers(1, 40))
def test_pairs_are_those_of_nested_loops_in_their_order(probe: list[int], stored: list[int], max_pairs: int) -> None:
    expected = [(i, j) for i, a in enumerate(probe) for j, b in enumerate(stored) if a == b]
    assert matched(match(probe, stored, max_pairs)) == expected


@given(st.data(), CODES, CODES, st.integers(1, 40))
def test_time_intervals_keep_what_nested_loops_keep(
    data: st.DataObject, probe: list[int], stored: list[int], max_pairs: int
) -> None:
    bounds = data.draw(st.lists(BOUNDS, min_size=len(probe), max_size=len(probe)))
    times = data.draw(st.lists(TIMES, min_size=len(stored), max_size=len(stored)))
    intervals = TimeIntervals(np.array([b[0] for b in bounds], np.int64), np.array([b[1] for b in bounds], np.int64))
    pieces = match_keys(codes_of(probe), codes_of(stored), intervals, np.array(times, np.int64), max_pairs=max_pairs)
    expected = [
        (i, j)
        for i, a in enumerate(probe)
        for j, b in enumerate(stored)
        if a == b and bounds[i][0] <= times[j] <= bounds[i][1]
    ]
    assert matched(list(pieces)) == expected


@pytest.mark.parametrize(("probe", "stored"), [([], [1, 2]), ([1, 2], []), ([], []), ([1, 3], [2, 4])])
def test_nothing_comes_out_where_nothing_meets(probe: list[int], stored: list[int]) -> None:
    assert match(probe, stored) == []


def test_codes_use_all_64_bits() -> None:
    top = (1 << 64) - 1
    assert matched(match([0, top - 1, top], [0, top])) == [(0, 0), (2, 1)]


def test_pieces_end_between_probe_rows_and_hold_at_most_max_pairs() -> None:
    pieces = match([1, 1, 1, 2, 2], [1, 1, 2, 2, 2], max_pairs=5)
    assert [len(piece.probe_idx) for piece in pieces] == [4, 5, 3]
    assert [sorted(set(piece.probe_idx.tolist())) for piece in pieces] == [[0, 1], [2, 3], [4]]


def test_one_probe_row_with_more_pairs_than_allowed_stays_whole() -> None:
    pieces = match([1, 2], [1] * 10 + [2], max_pairs=3)
    assert [len(piece.probe_idx) for piece in pieces] == [10, 1]


def test_a_null_time_meets_the_widest_interval_never() -> None:
    widest = TimeIntervals(np.array([NULL_TIME + 1], np.int64), np.array([np.iinfo(np.int64).max], np.int64))
    times: I64 = np.array([NULL_TIME, NULL_TIME + 1, 0], np.int64)
    pieces = match_keys(codes_of([4]), codes_of([4, 4, 4]), widest, times, max_pairs=10)
    assert matched(list(pieces)) == [(0, 1), (0, 2)]


def test_indexes_are_64_bit_integers() -> None:
    (piece,) = match([1], [1])
    assert piece.probe_idx.dtype == piece.stored_idx.dtype == np.int64
