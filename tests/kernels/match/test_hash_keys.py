from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.kernels.match.hash_keys import (
    PLACING_BITS,
    codes_of_groups,
    group_of_codes,
    hash_keys,
    is_exact_type,
    spread_codes,
)

UTC = pa.timestamp("us", tz="UTC")
DAY = datetime.date(2024, 2, 29)
NOON = datetime.datetime(2024, 2, 29, 12)  # noqa: DTZ001 - a timestamp_ntz has no zone

EXACT: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [True, False]),
    (pa.int8(), [-128, -1, 0, 127]),
    (pa.int16(), [-(1 << 15), 0, (1 << 15) - 1]),
    (pa.int32(), [-(1 << 31), 0, 1, (1 << 31) - 1]),
    (pa.int64(), [-(1 << 63), -1, 0, 1, (1 << 63) - 1]),
    (pa.date32(), [DAY, DAY + datetime.timedelta(days=1), datetime.date(1, 1, 1)]),
    (pa.timestamp("us"), [NOON, NOON + datetime.timedelta(microseconds=1)]),
    (UTC, [NOON, NOON - datetime.timedelta(microseconds=1)]),
]
HASHED: list[tuple[pa.DataType, list[Any]]] = [
    (pa.float32(), [0.0, 1.5, -1.5, math.inf, math.nan]),
    (pa.float64(), [0.0, 1.5, 1.5 + 2**-40, -math.inf, math.nan]),
    (pa.decimal128(10, 2), [Decimal("0.00"), Decimal("1.10"), Decimal("-1.10")]),
    (pa.decimal128(38, 0), [Decimal(10**37), Decimal(10**37 + 1)]),
    (pa.string(), ["", "a", "b", "\0", "\0\0", "1234567", "12345678", "123456789", "ä", "x" * 100]),
    (pa.large_string(), ["", "a", "12345678"]),
]
ALL = EXACT + HASHED
BY_TYPE = pytest.mark.parametrize(("arrow_type", "values"), ALL, ids=[str(t) for t, _ in ALL])


def codes(*columns: pa.Array) -> list[int]:
    return [int(code) for code in hash_keys(list(columns)).codes]


@BY_TYPE
def test_equal_values_have_equal_codes_and_these_others_have_others(arrow_type: pa.DataType, values: list[Any]) -> None:
    once = codes(pa.array(values, arrow_type))
    assert len(set(once)) == len(values)
    assert codes(pa.array(values[::-1], arrow_type)) == once[::-1]


@BY_TYPE
def test_a_slice_has_the_codes_of_its_rows(arrow_type: pa.DataType, values: list[Any]) -> None:
    column = pa.array([values[0], None, *values, None, *values], arrow_type)
    for offset, length in ((0, 3), (1, 2), (2, len(values)), (len(column) - 1, 1)):
        whole, part = hash_keys([column]), hash_keys([column.slice(offset, length)])
        valid = np.asarray(column.slice(offset, length).is_valid())
        assert part.codes[valid].tolist() == whole.codes[offset : offset + length][valid].tolist()
        assert (part.valid_mask is None) == valid.all()


@BY_TYPE
def test_nulls_are_masked_and_change_no_other_code(arrow_type: pa.DataType, values: list[Any]) -> None:
    keys = hash_keys([pa.array([None, *values, None], arrow_type)])
    assert keys.valid_mask is not None
    assert keys.valid_mask.tolist() == [False] + [True] * len(values) + [False]
    assert keys.codes[keys.valid_mask].tolist() == codes(pa.array(values, arrow_type))


@BY_TYPE
def test_a_column_of_nulls_or_of_nothing_is_no_trouble(arrow_type: pa.DataType, values: list[Any]) -> None:
    for column in (pa.nulls(3, arrow_type), pa.array([None, None, None], arrow_type)):
        mask = hash_keys([column]).valid_mask
        assert mask is not None
        assert not mask.any()
    empty = hash_keys([pa.array(values, arrow_type).slice(0, 0)])
    assert (len(empty.codes), empty.valid_mask) == (0, None)
    assert len(hash_keys([pa.array([], arrow_type)]).codes) == 0


@pytest.mark.parametrize("arrow_type", [t for t, _ in EXACT], ids=str)
def test_integer_like_keys_are_exact(arrow_type: pa.DataType) -> None:
    assert is_exact_type(arrow_type)
    assert hash_keys([pa.array([None], arrow_type)]).is_exact


@pytest.mark.parametrize("arrow_type", [t for t, _ in HASHED], ids=str)
def test_other_keys_must_be_confirmed(arrow_type: pa.DataType) -> None:
    assert not is_exact_type(arrow_type)
    assert not hash_keys([pa.array([None], arrow_type)]).is_exact


def test_composite_keys_must_be_confirmed() -> None:
    assert not hash_keys([pa.array([1]), pa.array([2])]).is_exact


@given(st.sets(st.integers(-(1 << 63), (1 << 63) - 1), max_size=200))
def test_exact_codes_differ_for_all_different_integers(values: set[int]) -> None:
    assert len(set(codes(pa.array(list(values), pa.int64())))) == len(values)


def test_an_integer_has_one_code_in_every_width() -> None:
    assert len({codes(pa.array([-7], t))[0] for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64())}) == 1


@pytest.mark.parametrize("arrow_type", [pa.float32(), pa.float64()], ids=str)
def test_zeros_are_one_key_and_so_are_all_nans(arrow_type: pa.DataType) -> None:
    other_nan = np.array([0x7FF8_0000_0000_0001, 0xFFF8_0000_0000_0000], np.uint64).view(np.float64)
    column = pa.concat_arrays([pa.array([0.0, -0.0, math.nan], arrow_type), pa.array(other_nan).cast(arrow_type)])
    zero, minus_zero, *nans = codes(column)
    assert zero == minus_zero
    assert len(set(nans)) == 1
    assert nans[0] != zero


def test_a_composite_key_depends_on_every_column_and_on_their_order() -> None:
    a, b = pa.array([1, 1, 2, 2]), pa.array(["x", "y", "x", "y"])
    assert len(set(codes(a, b))) == 4
    one, two = pa.array([1]), pa.array([2])
    assert codes(one, two) != codes(two, one)
    assert codes(one, one) != codes(two, two)


def test_neighbours_of_a_composite_key_do_not_run_together() -> None:
    assert codes(pa.array(["ab"]), pa.array(["c"])) != codes(pa.array(["a"]), pa.array(["bc"]))


def test_a_null_in_any_column_masks_the_row() -> None:
    keys = hash_keys([pa.array([1, None, 3, None]), pa.array(["a", "b", None, None])])
    assert keys.valid_mask is not None
    assert keys.valid_mask.tolist() == [True, False, False, False]


def test_a_key_needs_a_column() -> None:
    with pytest.raises(ValueError, match="a key needs a column"):
        hash_keys([])


@pytest.mark.parametrize("group_count", [1, 2, 8, 128, 1 << 15])
def test_sorting_by_code_sorts_by_key_group(group_count: int) -> None:
    ordered = np.sort(hash_keys([pa.array(range(2000))]).codes)
    groups = group_of_codes(ordered, group_count)
    assert (np.diff(groups) >= 0).all()
    assert groups.min() >= 0
    assert groups.max() < group_count
    for group in set(groups.tolist()):
        codes = codes_of_groups(group, group + 1, group_count)
        assert ordered[codes.slice_of(ordered)].tolist() == ordered[groups == group].tolist()


def test_key_groups_share_keys_evenly() -> None:
    counts = np.bincount(group_of_codes(hash_keys([pa.array(range(8000))]).codes, 8), minlength=8)
    assert counts.min() > 800
    assert counts.max() < 1200


@pytest.mark.parametrize("placing", [0, 1])
def test_a_placed_key_is_in_the_key_group_of_the_column_that_places_it(placing: int) -> None:
    rng = np.random.default_rng(placing)
    columns = [pa.array(rng.integers(0, 500, 10_000)), pa.array(rng.integers(0, 500, 10_000).astype(str))]
    placed, alone = hash_keys(columns, placing), hash_keys([columns[placing]])
    for group_count in (1, 8, 1 << PLACING_BITS):
        assert np.array_equal(group_of_codes(placed.codes, group_count), group_of_codes(alone.codes, group_count))
    # As many codes as keys, whatever places them; and turned they are spread evenly again.
    distinct = len(np.unique(hash_keys(columns).codes))
    assert len(np.unique(placed.codes)) == distinct
    assert np.bincount(group_of_codes(np.unique(spread_codes(placed.codes)), 8)).max() < 1.1 * distinct / 8
    assert not placed.is_exact


def test_a_placed_key_with_a_null_in_any_of_its_columns_equals_nothing() -> None:
    keys = hash_keys([pa.array([1, None, 1]), pa.array(["a", "b", None])], 0)
    assert keys.valid_mask is not None
    assert keys.valid_mask.tolist() == [True, False, False]
