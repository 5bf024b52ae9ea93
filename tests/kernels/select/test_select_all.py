"""Selections decided together say what each says alone."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dovetail.core.errors import EvaluationError
from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.evaluate.evaluate import evaluate_mask
from dovetail.kernels.select import thresholds
from dovetail.kernels.select.select_all import MANY_OF_A_COLUMN, select_all
from dovetail.kernels.select.thresholds import compared_column
from dovetail.query.expression import Call, Column, Expression, Literal
from dovetail.query.types import BIGINT, BOOLEAN, DATE, DOUBLE, FLOAT, INT, STRING, TIMESTAMP, SqlType

EDGES = [-(1 << 63), -(1 << 53) - 1, -(1 << 53), -1, 0, 1, 2, 3, (1 << 53), (1 << 53) + 1, (1 << 63) - 1]
FLOATS = [-math.inf, -1e308, -1.5, -0.0, 0.0, 5e-324, 1e-300, 1.0, 1.0 + 2**-52, 2.5, 1e308, math.inf]
VALUES: dict[SqlType, list[Any]] = {
    INT: [-(1 << 31), -2, -1, 0, 1, 2, 3, 1000, (1 << 31) - 1],
    BIGINT: EDGES,
    DOUBLE: FLOATS,
    FLOAT: [value for value in FLOATS if abs(value) < 1e30 or math.isinf(value)],
    TIMESTAMP: [0, 1, 1_700_000_000_000_000, 1_700_000_000_000_001],
}
FUNCTIONS = ("eq", "ne", "lt", "le", "gt", "ge")


def comparison(rng: Random, column: Column) -> Expression:
    call = Call(rng.choice(FUNCTIONS), (column, Literal(rng.choice(VALUES[column.type]), column.type)), BOOLEAN)
    if rng.random() < 0.3:
        return Call(rng.choice(("and", "or")), (call, comparison(rng, column)), BOOLEAN)
    return call


def values_of(rng: Random, sql_type: SqlType, length: int) -> pa.Array:
    more = [math.nan] if sql_type.is_floating else []
    chosen = [rng.choice([*VALUES[sql_type], *more, None]) for _ in range(length)]
    return pa.array(chosen, arrow_type(sql_type, "UTC"))


def never(_selection: Expression, error: EvaluationError) -> None:
    raise error


def assert_as_alone(selections: tuple[Expression, ...], column_of: Callable[[Column], pa.Array], length: int) -> None:
    decided = select_all(selections, column_of, length, "UTC", never)
    for place, selection in enumerate(selections):
        alone = evaluate_mask(selection, column_of, length)
        assert decided.words.mask(place).tolist() == alone.tolist(), str(selection)
        assert decided.counts[place] == np.count_nonzero(alone), str(selection)


@pytest.mark.parametrize("sql_type", list(VALUES), ids=str)
@pytest.mark.parametrize("seed", range(8))
def test_many_comparisons_of_columns_say_what_each_says(sql_type: SqlType, seed: int) -> None:
    rng = Random(seed)
    columns = [Column("row", name, sql_type) for name in ("x", "y")]
    selections = tuple(comparison(rng, rng.choice(columns)) for _ in range(rng.choice([80, 100, 200])))
    assert all(compared_column(selection) is not None for selection in selections)
    values = {column: values_of(rng, sql_type, 200) for column in columns}
    assert_as_alone(selections, values.__getitem__, 200)
    assert_as_alone(selections, lambda column: values[column].slice(7, 50), 50)
    assert_as_alone(selections, lambda column: values[column].slice(0, 0), 0)


def test_random_numbers_fall_between_constants_as_they_should() -> None:
    rng = Random(0)
    column = Column("row", "x", DOUBLE)
    for spread in (1e-9, 1.0, 1e15):
        constants = [rng.gauss(0, spread) for _ in range(300)]
        selections = tuple(Call(rng.choice(FUNCTIONS), (column, Literal(c, DOUBLE)), BOOLEAN) for c in constants)
        values = pa.array([*constants, *(rng.gauss(0, 2 * spread) for _ in range(500))])
        assert_as_alone(selections, lambda _column, values=values: values, 800)


def test_what_is_no_comparison_of_one_column_is_decided_by_itself() -> None:
    x, y, s = (Column("row", name, INT) for name in ("x", "y", "z"))
    text = Column("row", "s", STRING)
    mixed = [
        Call("gt", (x, y), BOOLEAN),
        Call("and", (Call("gt", (x, Literal(1, INT)), BOOLEAN), Call("gt", (y, Literal(1, INT)), BOOLEAN)), BOOLEAN),
        Call("is_null", (x,), BOOLEAN),
        Call("not", (Call("gt", (x, Literal(1, INT)), BOOLEAN),), BOOLEAN),
        Call("eq", (text, Literal("b", STRING)), BOOLEAN),
        Call("gt", (s, Literal(None, INT)), BOOLEAN),
    ]
    assert [compared_column(each) for each in mixed] == [None] * 6
    compared = [Call("lt", (x, Literal(constant, INT)), BOOLEAN) for constant in range(MANY_OF_A_COLUMN)]
    values = {"x": [None, 0, 2, 9], "y": [1, None, 2, 9], "z": [1, 2, 3, 4]}
    columns = {name: pa.array(own, pa.int32()) for name, own in values.items()} | {"s": pa.array(["a", "b", None, "b"])}
    selections = (*mixed[:3], *compared, *mixed[3:])
    assert_as_alone(selections, lambda column: columns[column.name], 4)


def test_a_selection_that_fails_passes_nothing_and_is_told() -> None:
    x = Column("row", "x", INT)
    fails = Call("gt", (Call("div", (Literal(1, INT), x), INT), Literal(0, INT)), BOOLEAN)
    fine = tuple(Call("ge", (x, Literal(constant, INT)), BOOLEAN) for constant in range(30))
    told: list[Expression] = []
    decided = select_all(
        (fails, *fine), lambda _: pa.array([0, 5], pa.int32()), 2, "UTC", lambda each, _error: told.append(each)
    )
    assert told == [fails]
    assert decided.words.failed == {0}
    assert not decided.words.mask(0).any()
    assert decided.counts.tolist() == [0, 2, *[1] * 5, *[0] * 24]


def test_a_search_that_takes_nan_for_a_small_number_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = thresholds._find_regions

    def without_nan(values: Any, *rest: Any) -> None:
        real(np.nan_to_num(values, nan=-math.inf), *rest)

    monkeypatch.setattr(thresholds, "_find_regions", without_nan)
    with pytest.raises(AssertionError):
        test_many_comparisons_of_columns_say_what_each_says(DOUBLE, 1)


def test_dates_are_compared_as_days() -> None:
    column = Column("row", "d", DATE)
    days = [datetime.date(2024, 2, 27) + datetime.timedelta(days=each) for each in range(30)]
    selections = tuple(Call("le", (column, Literal(day, DATE)), BOOLEAN) for day in days)
    assert_as_alone(selections, lambda _: pa.array([days[3], None, datetime.date(1, 1, 1)]), 3)
