"""Runs and what is folded over them, against looking at every pair."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.kernels.fold.fold_runs import (
    Runs,
    accepted_times,
    entries_of_runs,
    find_runs,
    order_by_time,
    prefix_counts,
)
from dovetail.kernels.fold.range_extremes import extremes_of_runs, find_extremes, order_keys
from dovetail.kernels.match.special_values import NO_LOWER, NO_UPPER, NULL_TIME

# Few codes and times: long runs, equal times and empty intervals are certain.
CODES = st.integers(0, 4)
TIMES = st.integers(-6, 6) | st.just(int(NULL_TIME))
ENTRIES = st.lists(st.tuples(CODES, TIMES), max_size=60)
LOWER = st.integers(-5, 5) | st.just(int(NO_LOWER))
UPPER = st.integers(-5, 5) | st.just(int(NO_UPPER))
LONG = (1 << 63) - 1


def arrays_of(entries: list[tuple[int, int]]) -> tuple[Any, Any]:
    return np.array([code for code, _ in entries], np.uint64), np.array([time for _, time in entries], np.int64)


@given(ENTRIES)
def test_entries_are_ordered_by_code_and_then_time(entries: list[tuple[int, int]]) -> None:
    entries = sorted(entries, key=lambda entry: entry[0])
    order = order_by_time(*arrays_of(entries))
    if order is None:
        assert entries == sorted(entries)
    else:
        assert [entries[i] for i in order] == sorted(entries)
        assert order.tolist() == sorted(range(len(entries)), key=lambda i: entries[i])


@given(st.lists(CODES, max_size=40).map(sorted), st.lists(CODES, max_size=40).map(sorted))
def test_runs_without_times_are_all_entries_of_the_code(walked: list[int], folded: list[int]) -> None:
    runs = find_runs(np.array(walked, np.uint64), np.array(folded, np.uint64))
    found = [list(range(begin, end)) for begin, end in zip(runs.begins, runs.ends, strict=True)]
    assert found == [[i for i, code in enumerate(folded) if code == walked_code] for walked_code in walked]


@given(
    st.lists(st.tuples(CODES, TIMES, TIMES), max_size=40),
    ENTRIES.map(sorted),
    st.lists(st.tuples(LOWER, UPPER), min_size=2, max_size=2),
)
def test_runs_with_times_are_the_entries_within_all_bounds(
    walked: list[tuple[int, int, int]], folded: list[tuple[int, int]], bounds: list[tuple[int, int]]
) -> None:
    walked = sorted(walked, key=lambda row: row[0])
    member_times = np.array([[row[1] for row in walked], [row[2] for row in walked]], np.int64).reshape(2, len(walked))
    lower, upper = (np.array([bound[end] for bound in bounds], np.int64) for end in (0, 1))
    is_bounded = any(bound != (int(NO_LOWER), int(NO_UPPER)) for bound in bounds)
    codes, times = arrays_of(folded)
    walked_codes = np.array([row[0] for row in walked], np.uint64)
    runs = find_runs(walked_codes, codes, accepted_times(member_times, lower, upper) if is_bounded else None, times)

    def meets(row: tuple[int, int, int], entry: tuple[int, int]) -> bool:
        if row[0] != entry[0]:
            return False
        for time, (low, high) in zip(row[1:], bounds, strict=True):
            is_free = (low, high) == (int(NO_LOWER), int(NO_UPPER))
            if not is_free and (NULL_TIME in (time, entry[1]) or not low <= entry[1] - time <= high):
                return False
        return True

    found = [list(range(begin, end)) for begin, end in zip(runs.begins, runs.ends, strict=True)]
    assert found == [[i for i, entry in enumerate(folded) if meets(row, entry)] for row in walked]


def test_a_bound_beyond_all_times_is_no_bound() -> None:
    times = np.array([[5, LONG - 1, NULL_TIME + 2]], np.int64)
    accepted = accepted_times(times, np.array([3 - LONG], np.int64), np.array([LONG - 3], np.int64))
    assert accepted.lowest.tolist() == [8 - LONG, 2, int(NO_LOWER)]
    assert accepted.highest.tolist() == [int(NO_UPPER), int(NO_UPPER), -2]


@given(st.lists(st.booleans(), max_size=300), st.data())
def test_counts_of_any_run_are_those_of_its_entries(mask: list[bool], data: st.DataObject) -> None:
    runs = _any_runs(data, len(mask))
    before = prefix_counts(np.array(mask, np.bool_))
    counts = before[runs.ends] - before[runs.begins]
    pairs = zip(runs.begins, runs.ends, strict=True)
    assert counts.tolist() == [sum(mask[begin:end]) for begin, end in pairs]
    entries = [position for begin, end in zip(runs.begins, runs.ends, strict=True) for position in range(begin, end)]
    assert entries_of_runs(runs).tolist() == entries


FLOATS = st.sampled_from([0.0, -0.0, 1.5, -1.5, math.nan, math.inf, -math.inf, 5e-324, -2.5e300])
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "bigint": (pa.int64(), st.integers(-LONG - 1, LONG)),
    "tinyint": (pa.int8(), st.integers(-128, 127)),
    "double": (pa.float64(), FLOATS),
    "float": (pa.float32(), FLOATS.map(lambda value: float(np.float32(max(min(value, 3e38), -3e38))))),
    "decimal": (pa.decimal128(38, 2), st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(f"{n}E-2"))),
    "string": (pa.string(), st.text("aé\U0001f600b", max_size=3)),
    "boolean": (pa.bool_(), st.booleans()),
    "timestamp": (pa.timestamp("us", "UTC"), st.integers(-(10**15), 10**15)),
    "date": (pa.date32(), st.integers(-100_000, 100_000)),
}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("is_max", [False, True])
@given(data=st.data())
def test_extremes_of_any_run_are_those_of_its_values(kind: str, is_max: bool, data: st.DataObject) -> None:
    data_type, strategy = VALUES[kind]
    # Repeated, so that runs cover whole blocks and blocks of blocks.
    drawn = data.draw(st.lists(strategy, min_size=1, max_size=20))
    values = drawn * data.draw(st.sampled_from([1, 7, 40, 700]))
    if kind in ("double", "float"):
        array = pa.array(np.array(values), data_type)
    elif kind == "decimal":
        array = pa.array(values, data_type)
    else:
        array = pa.array(values, {"timestamp": pa.int64(), "date": pa.int32()}.get(kind, data_type)).view(data_type)
    runs = _any_runs(data, len(values))
    found = extremes_of_runs(find_extremes(order_keys(array, is_max=is_max)), runs)
    for begin, end, position in zip(runs.begins.tolist(), runs.ends.tolist(), found.tolist(), strict=True):
        if begin == end:
            assert position == -1
            continue
        best = (max if is_max else min)(values[begin:end], key=_sql_order)
        assert begin <= position < end
        assert _sql_order(values[position]) == _sql_order(best)


def _sql_order(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode()
    return (math.isnan(value), 0.0 if math.isnan(value) else value) if isinstance(value, float) else value


def _any_runs(data: st.DataObject, count: int) -> Runs:
    pairs = data.draw(st.lists(st.tuples(st.integers(0, count), st.integers(0, count)).map(sorted), max_size=8))
    return Runs(np.array([low for low, _ in pairs], np.int64), np.array([high for _, high in pairs], np.int64))
