from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.kernels.expand_windows import expand_windows
from dovetail.kernels.match.special_values import NULL_TIME

TIMES = st.lists(st.integers(-60, 60) | st.just(int(NULL_TIME)), max_size=15)


def windows_by_definition(time: int, size: int, slide: int, offset: int) -> set[tuple[int, int]]:
    starts = (offset + k * slide for k in range(-200, 200))
    return {(start, start + size) for start in starts if start <= time < start + size}


@given(TIMES, st.integers(1, 12), st.data())
def test_every_row_lies_in_exactly_the_windows_of_the_definition(
    times: list[int], size: int, data: st.DataObject
) -> None:
    slide = data.draw(st.integers(1, size))
    offset = data.draw(st.integers(-slide + 1, slide - 1))
    rows = expand_windows(np.array(times, np.int64), size, slide, offset)
    found: dict[int, list[tuple[int, int]]] = {row: [] for row in range(len(times))}
    for row, start, end in zip(rows.row_idx, rows.start_us, rows.end_us, strict=True):
        found[int(row)].append((int(start), int(end)))
    for row, time in enumerate(times):
        expected = set() if time == NULL_TIME else windows_by_definition(time, size, slide, offset)
        assert len(found[row]) == len(expected)
        assert set(found[row]) == expected


@pytest.mark.parametrize(
    ("time", "size", "slide", "offset", "starts"),
    [
        (0, 10, 10, 0, [0]),  # tumbling; a start belongs to its window
        (10, 10, 10, 0, [10]),  # an end does not
        (-1, 10, 10, 0, [-10]),
        (7, 10, 4, 0, [4, 0]),  # the slide does not divide the size: two windows here
        (9, 10, 4, 0, [8, 4, 0]),  # and three there
        (5, 4, 2, 1, [5, 3]),
        (5, 4, 2, -1, [5, 3]),
    ],
)
def test_windows_as_spark_makes_them(time: int, size: int, slide: int, offset: int, starts: list[int]) -> None:
    rows = expand_windows(np.array([time]), size, slide, offset)
    assert rows.start_us.tolist() == starts
    assert rows.end_us.tolist() == [start + size for start in starts]


def test_rows_without_a_time_lie_in_no_window() -> None:
    rows = expand_windows(np.array([NULL_TIME, 3, NULL_TIME]), 4, 2, 0)
    assert rows.row_idx.tolist() == [1, 1]
