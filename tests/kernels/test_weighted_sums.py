"""Sums of values that are taken many times, against exact fractions."""

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

from dovetail.kernels.fold.exact_sum import HEAD, fold_values

LONG = (1 << 63) - 1
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "bigint": (pa.int64(), st.integers(-LONG - 1, LONG)),
    "int": (pa.int32(), st.integers(-(1 << 31), (1 << 31) - 1)),
    "double": (pa.float64(), st.floats(allow_nan=False, allow_infinity=False)),
    "float": (pa.float32(), st.floats(allow_nan=False, allow_infinity=False, width=32)),
    "decimal": (pa.decimal128(38, 2), st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(f"{n}E-2"))),
}
WEIGHTS = st.integers(0, 1000) | st.integers(0, (1 << 32) - 1) | st.just((1 << 32) - 1)
LARGE_WEIGHTS = WEIGHTS | st.integers(0, LONG >> 3)


def exact_value(entries: list[int]) -> Fraction:
    limbs = sum(limb << (32 * place) for place, limb in enumerate(entries[HEAD:]))
    return Fraction(limbs) * Fraction(2) ** entries[0]


@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data())
def test_values_are_summed_as_often_as_their_weights_say(kind: str, data: st.DataObject) -> None:
    data_type, strategy = VALUES[kind]
    weights = data.draw(st.sampled_from([WEIGHTS, LARGE_WEIGHTS]))
    rows = data.draw(st.lists(st.tuples(st.none() | strategy, st.integers(0, 2), weights), max_size=30))
    values = pa.array([value for value, _, _ in rows], data_type)
    groups = np.array([group for _, group, _ in rows], np.int64)
    sums = fold_values(values, groups, 3, np.array([weight for _, _, weight in rows], np.int64)).to_pylist()
    scale = 100 if kind == "decimal" else 1
    for group in range(3):
        own = [(value, weight) for value, place, weight in rows if place == group and value is not None]
        assert exact_value(sums[group]) == sum(Fraction(value) * scale * weight for value, weight in own)


def test_what_is_no_number_counts_as_often_as_its_weight_says() -> None:
    values = pa.array(np.array([math.nan, math.inf, -math.inf, 1.5]))
    (entries,) = fold_values(values, np.zeros(4, np.int64), 1, np.array([3, 5, 7, 2])).to_pylist()
    assert entries[1:HEAD] == [3, 5, 7]
    assert exact_value(entries) == 3
    (entries,) = fold_values(values[:3], np.zeros(3, np.int64), 1, np.array([3, 0, 7])).to_pylist()
    assert entries[1:HEAD] == [3, 0, 7]
