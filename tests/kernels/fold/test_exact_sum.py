"""Exact sums against fractions: any values, any split, any order, any weights."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.errors import EvaluationError
from dovetail.kernels.fold.exact_sum import fold_sums, fold_values
from dovetail.kernels.fold.read_sums import averages_of, bigints_of, decimals_of, doubles_of, integers_of
from dovetail.query.types import SqlType

GROUPS = 3
finite = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([5e-324, -5e-324, 1.7e308, -1.7e308, 0.1, 2.0**53, 1.0, -0.0]),
)


def rows_of(values: st.SearchStrategy[object]) -> st.SearchStrategy[list[tuple[object, int, int]]]:
    """Value, group, weight."""
    weights = st.one_of(st.integers(1, 5), st.integers(1, 2**62))
    return st.lists(st.tuples(st.one_of(st.none(), values), st.integers(0, GROUPS - 1), weights), max_size=40)


def nearest(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


@given(rows_of(finite), st.integers(0, 40))
def test_sums_of_doubles_are_the_nearest_to_the_true_ones(rows: list[tuple[float, int, int]], cut: int) -> None:
    values = pa.array([value for value, _, _ in rows], pa.float64())
    groups = np.array([group for _, group, _ in rows], np.int64)
    weights = np.array([weight for _, _, weight in rows], np.int64)
    whole = fold_values(values, groups, GROUPS)
    parts = [
        fold_values(values.slice(0, cut), groups[:cut], GROUPS),
        fold_values(values.slice(cut), groups[cut:], GROUPS),
    ]
    merged = fold_sums(pa.concat_arrays(parts), np.tile(np.arange(GROUPS), 2), GROUPS)
    single = fold_values(values, np.arange(len(rows)), len(rows))
    weighted = fold_sums(single, groups, GROUPS, weights)
    for group in range(GROUPS):
        own = [(Fraction(value), weight) for value, at, weight in rows if at == group and value is not None]
        exact = nearest(sum((value for value, _ in own), Fraction(0)))
        assert doubles_of(whole)[group] == doubles_of(merged)[group] == exact
        assert doubles_of(weighted)[group] == nearest(sum((value * weight for value, weight in own), Fraction(0)))


def test_what_is_no_number_is_counted_apart() -> None:
    values = pa.array([math.nan, 1.0, math.inf, 1.0, math.inf, -math.inf, -math.inf, 2.0])
    sums = doubles_of(fold_values(values, np.array([0, 0, 1, 1, 2, 2, 3, 3]), 5))
    assert math.isnan(sums[0])
    assert sums[1] == math.inf
    assert math.isnan(sums[2])
    assert sums[3] == -math.inf
    assert sums[4] == 0.0


@given(rows_of(st.integers(-(2**63), 2**63 - 1)))
def test_sums_of_integers_are_exact_or_refused(rows: list[tuple[int, int, int]]) -> None:
    groups = np.array([group for _, group, _ in rows], np.int64)
    sums = fold_values(pa.array([value for value, _, _ in rows], pa.int64()), groups, GROUPS)
    expected = [sum(value for value, at, _ in rows if at == group and value is not None) for group in range(GROUPS)]
    assert integers_of(sums) == expected
    no_nulls = np.zeros(GROUPS, np.bool_)
    if all(-(2**63) <= value < 2**63 for value in expected):
        assert bigints_of(sums, no_nulls).to_pylist() == expected
    else:
        with pytest.raises(EvaluationError, match="overflow"):
            bigints_of(sums, no_nulls)


@given(rows_of(st.integers(-(10**38) + 1, 10**38 - 1)), st.integers(0, 4))
def test_sums_and_averages_of_decimals_are_exact(rows: list[tuple[int, int, int]], more_digits: int) -> None:
    groups = np.array([group for _, group, _ in rows], np.int64)
    unscaled = [None if value is None else Decimal(value) for value, _, _ in rows]
    sums = fold_values(pa.array(unscaled, pa.decimal128(38, 0)), groups, GROUPS)
    expected = [sum(value for value, at, _ in rows if at == group and value is not None) for group in range(GROUPS)]
    no_nulls = np.zeros(GROUPS, np.bool_)
    kind = SqlType("decimal", 38, 0)
    if all(abs(value) < 10**38 for value in expected):
        assert [int(value) for value in decimals_of(sums, kind, no_nulls).to_pylist()] == expected
    else:
        with pytest.raises(EvaluationError, match="overflow"):
            decimals_of(sums, kind, no_nulls)
    counts = np.array([max(sum(at == group for _, at, _ in rows), 1) for group in range(GROUPS)])
    small = fold_values(
        pa.array([None if v is None else Decimal(int(v) % 10**9) for v in unscaled], pa.decimal128(38, 0)),
        groups,
        GROUPS,
    )
    averages = averages_of(small, counts, SqlType("decimal", 38, more_digits), 0, no_nulls).to_pylist()
    for total, count, average in zip(integers_of(small), counts.tolist(), averages, strict=True):
        assert abs(Fraction(average) - Fraction(total, count)) <= Fraction(1, 2 * 10**more_digits)


def test_averages_round_half_up_away_from_zero() -> None:
    sums = fold_values(pa.array([Decimal(1), Decimal(-1), Decimal(10) ** 37]), np.array([0, 1, 2]), 3)
    found = averages_of(sums, np.array([8, 8, 3]), SqlType("decimal", 38, 0), 0, np.zeros(3, np.bool_)).to_pylist()
    assert found == [Decimal(0), Decimal(0), Decimal(3333333333333333333333333333333333333)]
    halves = averages_of(sums, np.array([2, 2, 3]), SqlType("decimal", 38, 0), 0, np.zeros(3, np.bool_)).to_pylist()
    assert halves[:2] == [Decimal(1), Decimal(-1)]


def test_integers_add_up_beyond_what_64_bits_hold() -> None:
    values = pa.array([1 << 62, 1 << 62, -(1 << 63), -(1 << 63), 5], pa.int64())
    sums = fold_values(values, np.array([0, 0, 1, 1, 2]), 3)
    assert integers_of(sums) == [1 << 63, -(1 << 64), 5]
