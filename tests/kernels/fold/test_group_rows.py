"""Grouping, counting and approximate counting of rows against dictionaries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dovetail.kernels.fold import group_rows as group_rows_module
from dovetail.kernels.fold.fold_columns import fold_extremes
from dovetail.kernels.fold.group_rows import KeyColumn, codes_of_keys, group_rows, key_column, plain_key
from dovetail.kernels.fold.hyperloglog import estimate_distinct, ranks_of, registers_of
from dovetail.kernels.match.hash_keys import hash_bytes

KEYS = {
    pa.int64(): st.integers(-3, 3),
    pa.float64(): st.sampled_from([0.0, -0.0, math.nan, 1.5, -math.inf]),
    pa.string(): st.sampled_from(["", "a", "b", "äb"]),
    pa.bool_(): st.booleans(),
}


def told_apart(value: object) -> object:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value


@pytest.mark.parametrize("collides", [False, True])
@given(data=st.data())
def test_rows_are_of_one_group_if_and_only_if_their_keys_are_equal(data: st.DataObject, collides: bool) -> None:
    kinds = data.draw(st.lists(st.sampled_from(list(KEYS)), min_size=1, max_size=3))
    length = data.draw(st.integers(0, 30))
    texts = [data.draw(st.lists(st.none() | KEYS[kind], min_size=length, max_size=length)) for kind in kinds]
    columns = [key_column(plain_key(pa.array(own, kind))) for own, kind in zip(texts, kinds, strict=True)]
    codes = codes_of_keys(columns, length)
    found = group_rows(codes & np.uint64(1) if collides else codes, _hashed(columns) if collides else columns)
    number_by_key: dict[object, int] = {}
    keys = [tuple(told_apart(column[row]) for column in texts) for row in range(length)]
    expected = [number_by_key.setdefault(key, len(number_by_key)) for key in keys]
    assert found.numbers.tolist() == expected
    assert all(found.numbers[row] == number for number, row in enumerate(found.first_rows.tolist()))


def _hashed(columns: Sequence[KeyColumn]) -> list[KeyColumn]:
    return [KeyColumn(column.words, column.identity, is_exact=False) for column in columns]


def test_a_number_with_the_word_of_null_is_not_null() -> None:
    column = key_column(pa.array([0x6E756C6C6E756C6C, None], pa.int64()))
    assert group_rows(codes_of_keys([column], 2), [column]).count == 2


TEXTS = st.none() | st.sampled_from(["", "a", "b", "a" * 64, "b" * 64, "a" * 63 + "b", "a" * 200, "a" * 199 + "b", "ä"])


@pytest.mark.parametrize("bits", [0, 1, 64])
@given(rows=st.lists(TEXTS, max_size=30), skipped=st.integers(0, 3))
@example(rows=[None, ""], skipped=0)
@example(rows=["", None, "a"], skipped=0)
@example(rows=["a" * 200, "a", "a" * 64], skipped=0)
@example(rows=["a", "a" * 200], skipped=0)
def test_texts_are_told_apart_by_their_bytes_whatever_their_codes(
    rows: list[str | None], skipped: int, bits: int
) -> None:
    """With few bits texts collide with each other; with none of them also with NULL."""

    def few_bits(content: Any, ends: Any) -> Any:
        words = hash_bytes(content, ends)
        return words if bits == 64 else np.where(words & np.uint64(bits), group_rows_module._NULL_WORD, np.uint64(7))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_rows_module, "hash_bytes", few_bits)
        if bits == 0:
            patch.setattr(group_rows_module, "_NULL_WORD", np.uint64(7))
        column = key_column(pa.array([*["left out"] * skipped, *rows], pa.string())[skipped:])
    found = group_rows(codes_of_keys([column], len(rows)), [column])
    number_by_text: dict[str | None, int] = {}
    assert found.numbers.tolist() == [number_by_text.setdefault(text, len(number_by_text)) for text in rows]


def test_many_groups_and_rows() -> None:
    values = np.random.default_rng(1).integers(0, 50_000, 200_000)
    column = key_column(pa.array(values))
    found = group_rows(codes_of_keys([column], len(values)), [column])
    assert (values[found.first_rows][found.numbers] == values).all()
    assert found.count == len(np.unique(values))


def array_of(values: list[object], kind: pa.DataType) -> pa.Array:
    return pa.array(values, pa.int32()).cast(kind) if pa.types.is_date(kind) else pa.array(values).cast(kind)


@pytest.mark.parametrize("kind", [pa.int8(), pa.float32(), pa.float64(), pa.string(), pa.date32(), pa.bool_()])
@pytest.mark.parametrize("largest", [False, True])
def test_extremes_leave_nulls_out(kind: pa.DataType, largest: bool) -> None:
    values = {"string": ["b", "a", None], "bool": [True, False, None]}.get(str(kind), [2, 1, None])
    found = fold_extremes(array_of(values, kind), np.array([0, 0, 1]), 3, largest=largest)
    assert found.type == kind
    assert found[0] == array_of([values[0 if largest else 1]], kind)[0]
    assert found.to_pylist()[1:] == [None, None]


def test_nan_is_above_all_numbers() -> None:
    values, groups = pa.array([math.nan, math.inf, math.nan, -math.inf]), np.array([0, 0, 1, 2])
    assert math.isnan(fold_extremes(values, groups, 3, largest=True)[0].as_py())
    assert fold_extremes(values, groups, 3, largest=False)[0].as_py() == math.inf
    assert math.isnan(fold_extremes(values, groups, 3, largest=False)[1].as_py())
    assert fold_extremes(values, groups, 3, largest=True)[2].as_py() == -math.inf


@pytest.mark.parametrize("count", [0, 1, 100, 5_000, 20_000, 500_000])
def test_approximate_counts_are_near(count: int) -> None:
    codes = codes_of_keys([key_column(pa.array(np.arange(count)))], count)
    ranks = np.zeros(4096, np.int8)
    np.maximum.at(ranks, registers_of(codes), ranks_of(codes))
    used = np.flatnonzero(ranks)
    (found,) = estimate_distinct(ranks[used], np.zeros(len(used), np.int64), 1)
    assert abs(int(found) - count) <= 0.05 * count


@given(
    st.lists(st.tuples(st.integers(0, 4), st.none() | st.text("aé", max_size=3)), max_size=30),
    st.booleans(),
)
@example(rows=[(0, "b"), (0, "a"), (0, "c"), (1, None)], largest=False)
@example(rows=[(0, "b"), (0, "c"), (0, "a"), (1, None)], largest=True)
def test_long_texts_are_compared_as_short_ones_are(rows: list[tuple[int, str | None]], largest: bool) -> None:
    """In the order of their bytes; those of a group that has none are NULL."""
    groups = np.array([group for group, _ in rows], np.int64)
    short = pa.array([text for _, text in rows], pa.string())
    long = pa.array([None if text is None else "x" * 2000 + text for _, text in rows], pa.string())
    expected = [None if text is None else "x" * 2000 + text for text in _extremes_of(rows, largest)]
    assert fold_extremes(short, groups, 5, largest=largest).to_pylist() == _extremes_of(rows, largest)
    assert fold_extremes(long, groups, 5, largest=largest).to_pylist() == expected


def _extremes_of(rows: list[tuple[int, str | None]], largest: bool) -> list[str | None]:
    by_group = [[text.encode() for group, text in rows if group == each and text is not None] for each in range(5)]
    return [(max(texts) if largest else min(texts)).decode() if texts else None for texts in by_group]
