from __future__ import annotations

import datetime
import itertools
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.kernels.arrow_types import sql_type_of
from dovetail.kernels.match.order_values import End, loosest, order_values, row_ranges
from dovetail.query.order_kinds import is_exactly_ordered

NAN = math.nan
ASCENDING: dict[str, tuple[pa.DataType, list[Any]]] = {
    "tinyint": (pa.int8(), [-128, -1, 0, 1, 127]),
    "bigint": (pa.int64(), [-(2**63), -1, 0, 2**63 - 1]),
    "boolean": (pa.bool_(), [False, True]),
    "double": (pa.float64(), [-math.inf, -1e300, -1.5, 0.0, 5e-324, 1.5, math.inf, NAN]),
    "float": (pa.float32(), [-math.inf, -1.5, 0.0, 1.5, math.inf, NAN]),
    "date": (pa.date32(), [datetime.date(1969, 12, 31), datetime.date(1970, 1, 1), datetime.date(2024, 2, 29)]),
    "timestamp": (pa.timestamp("us", tz="UTC"), [-5, 0, 7]),
    "interval": (pa.duration("us"), [-5, 0, 7]),
    "short decimal": (pa.decimal128(18, 2), [Decimal("-9999999999999999.99"), Decimal("-0.01"), Decimal("0.01")]),
    "long decimal": (pa.decimal128(38, 0), [Decimal(-(10**37)), Decimal(0), Decimal(10**37), Decimal(10**38 - 1)]),
    "string": (pa.string(), ["", "a", "aa", "b", "zebra", "ä", "日本"]),
}


@pytest.mark.parametrize("name", ASCENDING)
def test_order_values_ascend_as_the_values_do(name: str) -> None:
    data_type, values = ASCENDING[name]
    column = pa.array([None, *values, None], data_type).slice(1, len(values))
    found = order_values(column)
    assert found.valid_mask is None
    assert all(a < b for a, b in itertools.pairwise(found.values.tolist()))


def test_values_that_spark_calls_equal_are_one() -> None:
    zeros = order_values(pa.array([0.0, -0.0])).values
    nans = order_values(pa.array([NAN, -NAN])).values
    assert zeros[0] == zeros[1]
    assert nans[0] == nans[1]


def test_nulls_are_told() -> None:
    found = order_values(pa.array([1, None], pa.int32()))
    assert found.valid_mask is not None
    assert found.valid_mask.tolist() == [True, False]


@given(texts=st.lists(st.text(max_size=12), min_size=2, max_size=2))
def test_coarse_order_values_never_contradict(texts: list[str]) -> None:
    first, second = order_values(pa.array(texts)).values.tolist()
    a, b = (text.encode() for text in texts)
    assert not (a < b and first > second)
    assert not (a > b and first < second)


@given(numbers=st.lists(st.decimals(-(10**30), 10**30, places=2), min_size=2, max_size=2))
def test_long_decimals_never_contradict(numbers: list[Decimal]) -> None:
    first, second = order_values(pa.array(numbers, pa.decimal128(38, 2))).values.tolist()
    assert not (numbers[0] < numbers[1] and first > second)
    assert not (numbers[0] > numbers[1] and first < second)


@pytest.mark.parametrize("name", ASCENDING)
def test_it_is_known_which_types_are_exact(name: str) -> None:
    data_type = ASCENDING[name][0]
    if name != "interval":
        assert is_exactly_ordered(sql_type_of(data_type)) == (name not in ("string", "long decimal"))


LARGEST, LEAST = 2**63 - 1, -(2**63)


@given(
    value=st.sampled_from([LARGEST, LARGEST - 3, 0, LEAST + 3, LEAST]),
    offset=st.integers(-5, 5),
    is_inclusive=st.booleans(),
    stored=st.sampled_from([LARGEST, LARGEST - 1, 1, 0, LEAST + 1, LEAST]),
)
def test_ends_beyond_all_values_do_not_wrap(value: int, offset: int, is_inclusive: bool, stored: int) -> None:
    end = End(pa.array([value], pa.int64()), offset, is_inclusive)
    above, below = row_ranges(end, None, 1), row_ranges(None, end, 1)
    limit = value + offset
    assert (above.lower[0] <= stored <= above.upper[0]) == (stored >= limit if is_inclusive else stored > limit)
    assert (below.lower[0] <= stored <= below.upper[0]) == (stored <= limit if is_inclusive else stored < limit)


def test_nothing_lies_in_a_range_with_a_null_end() -> None:
    known, unknown = pa.array([5], pa.int64()), pa.array([None], pa.int64())
    for ends in ((End(unknown), None), (None, End(unknown)), (End(unknown), End(known)), (End(known), End(unknown))):
        found = row_ranges(*ends, 1)
        assert found.lower[0] > found.upper[0]
    assert loosest([found, row_ranges(End(known), End(known), 1)]).lower[0] == 5


FLOATS = st.floats(allow_nan=True, width=64) | st.sampled_from([0.0, -0.0, math.inf, -math.inf, NAN])


def is_at_most(a: float, b: float) -> bool:
    return math.isnan(b) or (not math.isnan(a) and a <= b)


@given(stored=FLOATS, value=FLOATS, offset=st.floats(-1e6, 1e6))
def test_rounded_differences_lose_no_pair(stored: float, value: float, offset: float) -> None:
    place = order_values(pa.array([stored])).values[0]
    end = End(pa.array([value]), offset)
    difference = stored - value
    if is_at_most(difference, offset):
        assert place <= row_ranges(None, end, 1).upper[0]
    if is_at_most(offset, difference):
        assert place >= row_ranges(end, None, 1).lower[0]
