from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.kernels.narrow_columns import narrow_columns, widen_columns
from tests.support.examples import examples

WHOLE = {pa.int16(): 15, pa.int32(): 31, pa.int64(): 63}
TIMES_US = (-(2**51), 2**51)


def _lists(values: st.SearchStrategy[Any], kind: pa.DataType, min_size: int = 0) -> st.SearchStrategy[pa.Array]:
    return st.lists(st.none() | values, min_size=min_size).map(lambda found: pa.array(found, kind))


def _decimals(digits: int) -> st.SearchStrategy[pa.Array]:
    values = st.integers(-(10**digits) + 1, 10**digits - 1).map(lambda value: Decimal(value).scaleb(-2))
    return _lists(values, pa.decimal128(digits, 2))


COLUMNS = [
    *(_lists(st.integers(-(2**bits), 2**bits - 1), kind) for kind, bits in WHOLE.items()),
    _lists(st.integers(-300, 300), pa.int64()),
    _lists(st.dates(), pa.date32()),
    _lists(st.integers(*TIMES_US), pa.int64()).map(lambda column: column.cast(pa.timestamp("us", tz="UTC"))),
    *(_decimals(digits) for digits in (4, 15, 18, 20)),
    _lists(st.text(max_size=3), pa.string()),
    _lists(st.sampled_from(["AIR", "RAIL", ""]), pa.large_string(), min_size=8),
    _lists(st.floats(allow_nan=False), pa.float64()),
    _lists(st.booleans(), pa.bool_()),
]


@examples(3)
@given(st.one_of(*COLUMNS), st.integers(0, 3))
def test_the_same_values_come_out_again(column: pa.Array, skipped: int) -> None:
    batch = pa.RecordBatch.from_arrays([column.slice(skipped)], ["x"])
    assert widen_columns(narrow_columns(batch, ["x"])).equals(batch)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([2**40, 2**40 + 255, None]), pa.uint8()),
        (pa.array([0, 256]), pa.uint16()),
        (pa.array([-1, 2**32 - 2]), pa.uint32()),
        (pa.array([0, 2**32]), pa.int64()),
        (pa.array([date(2026, 1, 1), date(2026, 2, 1)]), pa.uint8()),
        (pa.array([Decimal("1.25"), Decimal("-1.25")], pa.decimal128(15, 2)), pa.uint8()),
        (pa.array([Decimal("1e15"), Decimal("-1e15")], pa.decimal128(18, 2)), pa.int64()),
        (pa.array(["AIR", "RAIL"] * 4), pa.dictionary(pa.uint8(), pa.string())),
        (pa.array(["AIR", "RAIL"]), pa.string()),
    ],
)
def test_values_take_the_bytes_that_they_need(column: pa.Array, kind: pa.DataType) -> None:
    narrowed = narrow_columns(pa.RecordBatch.from_arrays([column], ["x"]), ["x"])
    assert narrowed.schema.field("x").type == kind


def test_other_columns_and_what_the_schema_says_stay() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2]), pa.array([1, 2])], names=["x", "y"], metadata={b"a": b"b"})
    narrowed = narrow_columns(batch, ["x"])
    assert narrowed.schema.field("y").type == pa.int64()
    assert narrowed.schema.metadata[b"a"] == b"b"
    assert widen_columns(narrowed).schema.metadata == {b"a": b"b"}
