"""Fields and truncations of times beyond the years that Arrow counts; what is expected is what Spark answers."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dovetail.core.errors import EvaluationError
from dovetail.kernels.evaluate.evaluate import evaluate
from dovetail.query.expression import Call, Column, Literal
from dovetail.query.types import DATE, INT, STRING, TIMESTAMP, SqlType

TIMES = (2**62, -(2**62), -(2**63), 0, None)
FIELDS = {
    "year": [148108, -144169, -290308, 1970, None],
    "quarter": [3, 2, 4, 1, None],
    "month": [7, 6, 12, 1, None],
    "day": [6, 28, 21, 1, None],
    "dayofyear": [188, 179, 356, 1, None],
    "weekofyear": [27, 26, 51, 1, None],
    "dayofweek": [6, 3, 1, 5, None],
    "weekday": [4, 1, 6, 3, None],
    "hour": [14, 9, 19, 0, None],
    "minute": [0, 59, 59, 0, None],
    "second": [27, 32, 5, 0, None],
}
TRUNCATED = {
    "year": [4611669811200000000, -4611701433600000000],
    "quarter": [4611685536000000000, -4611693657600000000],
    "month": [4611685536000000000, -4611688387200000000],
    "week": [4611685622400000000, -4611686140800000000],
    "day": [4611685968000000000, -4611686054400000000],
    "hour": [4611686018400000000, -4611686022000000000],
    "minute": [4611686018400000000, -4611686018460000000],
    "second": [4611686018427000000, -4611686018428000000],
    "millisecond": [4611686018427387000, -4611686018427388000],
}


def stamps(*micros: int | None) -> pa.Array:
    return pa.array(micros, pa.int64()).view(pa.timestamp("us", "UTC"))


def answer(function: str, column: pa.Array, sql_type: SqlType, *before: Literal) -> list[object]:
    call = Call(function, (*before, Column("a", "t", sql_type)), TIMESTAMP if before else INT)
    found = evaluate(call, lambda _: column, len(column))
    return found.cast(pa.int64() if before else pa.int32()).to_pylist()


@pytest.mark.parametrize("field", FIELDS)
def test_fields_of_far_times(field: str):
    assert answer(field, stamps(*TIMES), TIMESTAMP) == FIELDS[field]


@pytest.mark.parametrize("field", [field for field in FIELDS if field not in ("hour", "minute", "second")])
def test_fields_of_far_dates(field: str):
    days = pa.array([None if time is None else time // 86_400_000_000 for time in TIMES], pa.int32())
    assert answer(field, days.cast(pa.date32()), DATE) == FIELDS[field]


@pytest.mark.parametrize("unit", TRUNCATED)
def test_truncated_far_times(unit: str):
    assert answer("date_trunc", stamps(2**62, -(2**62)), TIMESTAMP, Literal(unit, STRING)) == TRUNCATED[unit]
    with pytest.raises(EvaluationError, match="overflow"):
        answer("date_trunc", stamps(-(2**63)), TIMESTAMP, Literal(unit, STRING))


def test_a_constant_is_one_time_for_all_rows():
    constant = Literal(2**62, TIMESTAMP)
    assert evaluate(Call("year", (constant,), INT), lambda _: None, 2).to_pylist() == [148108, 148108]
