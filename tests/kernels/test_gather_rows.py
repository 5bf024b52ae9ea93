from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from dovetail.kernels.gather_rows import Gatherer, make_refs, ordinals_of

U64 = npt.NDArray[np.uint64]
DAY = datetime.date(2024, 2, 29)
NOON = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)

VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [True, False, True, True, False]),
    (pa.int8(), [-128, 0, 1, 2, 127]),
    (pa.int16(), [-(1 << 15), 0, 1, 2, (1 << 15) - 1]),
    (pa.int32(), [-(1 << 31), 0, 1, 2, (1 << 31) - 1]),
    (pa.int64(), [-(1 << 63), 0, 1, 2, (1 << 63) - 1]),
    (pa.float32(), [0.5, -1.5, 0.0, float("inf"), 3.0]),
    (pa.float64(), [0.1, -1.5, 0.0, float("-inf"), 3.0]),
    (pa.decimal128(10, 2), [Decimal("-1.10"), Decimal("0.00"), Decimal("99999999.99"), Decimal("1.00"), None]),
    (pa.decimal128(38, 0), [Decimal(10**37), Decimal(-(10**37)), Decimal(0), Decimal(1), Decimal(-1)]),
    (pa.string(), ["", "a", "ä€", "x" * 50, "b"]),
    (pa.date32(), [DAY + datetime.timedelta(days=days) for days in range(5)]),
    (pa.timestamp("us", tz="UTC"), [NOON + datetime.timedelta(microseconds=i) for i in range(5)]),
]
BY_TYPE = pytest.mark.parametrize(("arrow_type", "values"), VALUES, ids=[str(t) for t, _ in VALUES])


def some_refs(columns: list[pa.Array], count: int = 60) -> U64:
    """References into all buckets, mixed and repeated, as matching leaves them."""
    generator = random.Random(7)
    picks = [generator.choice([(o, r) for o, c in enumerate(columns) for r in range(len(c))]) for _ in range(count)]
    return np.concatenate([make_refs(ordinal, np.array([row])) for ordinal, row in picks])


def fetched(columns: list[pa.Array], refs: U64) -> list[Any]:
    """The same by plain lists."""
    return [columns[int(ref) >> 32][int(ref) & 0xFFFFFFFF].as_py() for ref in refs]


def check(columns: list[pa.Array]) -> None:
    refs = some_refs(columns)
    gathered = Gatherer(columns).gather(refs)
    gathered.validate(full=True)
    assert gathered.type == columns[0].type
    assert gathered.to_pylist() == fetched(columns, refs)


@BY_TYPE
def test_one_bucket(arrow_type: pa.DataType, values: list[Any]) -> None:
    check([pa.array(values, arrow_type)])


@BY_TYPE
def test_several_buckets(arrow_type: pa.DataType, values: list[Any]) -> None:
    check([pa.array(values, arrow_type), pa.array(values[::-1], arrow_type), pa.array(values[2:], arrow_type)])


@BY_TYPE
def test_nulls_in_some_buckets_only(arrow_type: pa.DataType, values: list[Any]) -> None:
    check(
        [
            pa.array(values, arrow_type),
            pa.array([None, *values, None] * 3, arrow_type),
            pa.array([None, None], arrow_type),
            pa.nulls(2, arrow_type),
        ]
    )


@BY_TYPE
def test_slices_of_longer_arrays(arrow_type: pa.DataType, values: list[Any]) -> None:
    longer = pa.array([None, *values, None, *values[::-1]] * 2, arrow_type)
    check([longer.slice(3, 9), longer.slice(9, 2), pa.array(values, arrow_type).slice(1)])


@BY_TYPE
def test_no_references_give_an_empty_array_of_the_type(arrow_type: pa.DataType, values: list[Any]) -> None:
    gathered = Gatherer([None, pa.array(values, arrow_type)]).gather(np.zeros(0, np.uint64))
    assert (len(gathered), gathered.type) == (0, arrow_type)


@BY_TYPE
def test_buckets_that_lack_the_column_do_not_matter_to_the_others(arrow_type: pa.DataType, values: list[Any]) -> None:
    columns = [None, pa.array([None, *values], arrow_type), None, pa.array(values, arrow_type)]
    refs = np.concatenate([make_refs(3, np.arange(len(values))), make_refs(1, np.arange(len(values) + 1))])
    assert Gatherer(columns).gather(refs).to_pylist() == [*values, None, *values]


def test_a_column_that_no_bucket_has_is_refused() -> None:
    with pytest.raises(ValueError, match="no bucket has the column"):
        Gatherer([None, None])


def test_a_reference_holds_bucket_and_row() -> None:
    refs = make_refs(5, np.array([0, (1 << 32) - 1], np.uint32))
    assert refs.tolist() == [5 << 32, (6 << 32) - 1]
    assert ordinals_of(refs).tolist() == [5, 5]


def test_the_gatherer_keeps_its_arrays_alive() -> None:
    gatherer = Gatherer([pa.array(np.arange(100_000))])
    _ = [pa.array(np.full(100_000, -1)) for _ in range(3)]
    assert gatherer.gather(make_refs(0, np.array([99_999]))).to_pylist() == [99_999]


@BY_TYPE
def test_rows_of_a_bucket_that_lacks_the_column_are_null(arrow_type: pa.DataType, values: list[Any]) -> None:
    column = pa.array(values, arrow_type)
    refs = np.concatenate([make_refs(0, np.arange(3)), make_refs(1, np.arange(5)), make_refs(0, np.arange(2))])
    gathered = Gatherer([None, column]).gather(refs)
    gathered.validate(full=True)
    assert gathered.to_pylist() == [None] * 3 + column.to_pylist() + [None] * 2
    assert Gatherer([None, column]).gather(refs[:3]).to_pylist() == [None] * 3
