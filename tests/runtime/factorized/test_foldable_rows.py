"""What runs of any values fold to, against adding up their values one by one."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.fold.exact_sum import HEAD, fold_sums
from dovetail.kernels.fold.fold_runs import Runs
from dovetail.query.expression import Column, Expression
from dovetail.query.types import BIGINT, DOUBLE, FLOAT, INT, STRING, SqlType
from dovetail.runtime.factorized.foldable_rows import FoldableRows

LONG = (1 << 63) - 1
MONEY = SqlType("decimal", 38, 2)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)
VALUES: dict[str, tuple[SqlType, st.SearchStrategy[Any]]] = {
    "bigint": (BIGINT, st.integers(-LONG - 1, LONG)),
    "int": (INT, st.integers(-(1 << 31), (1 << 31) - 1)),
    "double": (DOUBLE, DOUBLES),
    "float": (FLOAT, st.floats(allow_nan=False, allow_infinity=False, width=32)),
    "decimal": (MONEY, st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(f"{n}E-2"))),
}
COLUMN = "v"


def foldable_rows(values: pa.Array, kind: SqlType, codes: list[int] | None = None) -> tuple[FoldableRows, Expression]:
    codes = [7] * len(values) if codes is None else codes
    rows = FoldableRows(np.array(codes, np.uint64), None, np.arange(len(values)))
    argument = Column("row", COLUMN, kind)
    rows.prepare([argument], lambda _: values, "UTC")
    return rows, argument


def exact_value(entries: list[int]) -> Fraction:
    limbs = sum(limb << (32 * place) for place, limb in enumerate(entries[HEAD:]))
    return Fraction(limbs) * Fraction(2) ** entries[0]


def any_runs(data: st.DataObject, count: int) -> Runs:
    pairs = data.draw(st.lists(st.tuples(st.integers(0, count), st.integers(0, count)).map(sorted), max_size=8))
    return Runs(np.array([low for low, _ in pairs], np.int64), np.array([high for _, high in pairs], np.int64))


@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data())
def test_counts_sums_and_extremes_of_any_run(kind: str, data: st.DataObject) -> None:
    sql_type, strategy = VALUES[kind]
    values = data.draw(st.lists(st.none() | strategy, max_size=20)) * data.draw(st.sampled_from([1, 3, 50]))
    rows, argument = foldable_rows(pa.array(values, arrow_type(sql_type)), sql_type)
    runs = any_runs(data, len(values))
    counts, sums = rows.counts((argument,), runs).tolist(), rows.sums(argument, runs).to_pylist()
    smallest = rows.extremes(argument, runs, is_max=False).to_pylist()
    largest = rows.extremes(argument, runs, is_max=True).to_pylist()
    for place, (begin, end) in enumerate(zip(runs.begins, runs.ends, strict=True)):
        present = [value for value in values[begin:end] if value is not None]
        assert counts[place] == len(present)
        scale = 100 if kind == "decimal" else 1
        assert exact_value(sums[place]) == sum(Fraction(value) * scale for value in present)
        assert (smallest[place], largest[place]) == (min(present, default=None), max(present, default=None))


def test_what_is_no_number_is_counted_apart() -> None:
    values = pa.array(np.array([1.5, math.nan, math.inf, math.inf, -math.inf, 2.0]))
    rows, argument = foldable_rows(values, DOUBLE)
    sums = rows.sums(argument, Runs(np.array([0, 0, 1, 5]), np.array([6, 1, 5, 6]))).to_pylist()
    assert [entries[1:HEAD] for entries in sums] == [[1, 2, 1], [0, 0, 0], [1, 2, 1], [0, 0, 0]]
    assert [exact_value(entries) for entries in sums] == [Fraction(7, 2), Fraction(3, 2), 0, 2]


def test_a_value_met_by_very_many_rows_does_not_overflow() -> None:
    rows, argument = foldable_rows(pa.array([LONG] * 1000), BIGINT)
    sums = rows.sums(argument, Runs(np.zeros(50, np.int64), np.full(50, 1000)))
    weights = np.full(50, (1 << 33) + 1)
    folded = fold_sums(sums, np.zeros(50, np.int64), 1, weights)
    assert exact_value(folded.to_pylist()[0]) == LONG * 1000 * 50 * ((1 << 33) + 1)


def test_keys_of_one_code_are_told_apart() -> None:
    values = pa.array(["a", "a", "b", "b", "c"])
    rows, key = foldable_rows(values, STRING, [1, 1, 2, 2, 3])
    assert not rows.mixes_keys((key,))
    runs = rows.runs(np.array([1, 2, 3], np.uint64), None)
    assert rows.have_keys((key,), [pa.array(["a", "x", "c"])], runs).tolist() == [True, False, True]
    mixed, key = foldable_rows(values, STRING, [1, 1, 2, 3, 3])
    assert mixed.mixes_keys((key,))


def test_entries_are_ordered_by_time_within_a_code() -> None:
    rows = FoldableRows(np.array([1, 1, 2, 2], np.uint64), np.array([9, 5, 1, 2]), np.array([10, 11, 12, 13]))
    assert rows.rows.tolist() == [11, 10, 12, 13]
    assert rows.times is not None
    assert rows.times.tolist() == [5, 9, 1, 2]
