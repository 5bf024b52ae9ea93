"""Rules of the evaluator that hold whatever Spark is at hand: NULLs, guards, shapes, errors, speed."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from dovetail.core.errors import EvaluationError, StreamError
from dovetail.kernels.arrow_types import arrow_type, sql_type_of
from dovetail.kernels.evaluate.evaluate import evaluate, evaluate_mask
from dovetail.query.expression import Call, Column, Expression, Literal
from dovetail.query.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    WINDOW,
    SqlType,
)

X, Y = Column("a", "i", INT), Column("a", "j", INT)
D, E = Column("a", "d", DOUBLE), Column("a", "e", DOUBLE)
S = Column("a", "s", STRING)
NAN = float("nan")


def call(function: str, *args: Expression, type: SqlType = BOOLEAN) -> Call:  # noqa: A002 - reads as SQL does
    return Call(function, args, type)


def values(expression: Expression, **columns: pa.Array) -> list[object]:
    length = len(next(iter(columns.values())))
    return evaluate(expression, lambda column: columns[column.name], length).to_pylist()


def ints(*numbers: int | None) -> pa.Array:
    return pa.array(numbers, pa.int32())


def doubles(*numbers: float | None) -> pa.Array:
    return pa.array(numbers, pa.float64())


def test_and_or_follow_the_logic_of_three_values():
    a, b = Column("t", "a", BOOLEAN), Column("t", "b", BOOLEAN)
    three = [True, False, None]
    pairs = [(x, y) for x in three for y in three]
    columns = {"a": pa.array([x for x, _ in pairs]), "b": pa.array([y for _, y in pairs])}
    assert values(call("and", a, b), **columns) == [True, False, None, False, False, False, None, False, None]
    assert values(call("or", a, b), **columns) == [True, True, True, True, False, None, True, None, None]
    assert values(call("not", a), **columns) == [False, False, False, True, True, True, None, None, None]


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("eq", [True, False, False, True, None]),
        ("lt", [False, False, True, False, None]),
        ("le", [True, False, True, True, None]),
        ("gt", [False, True, False, False, None]),
        ("ge", [True, True, False, True, None]),
        ("ne", [False, True, True, False, None]),
        ("eq_null_safe", [True, False, False, True, False]),
    ],
)
def test_nan_equals_nan_and_is_above_all_numbers(operator, expected):
    d, e = doubles(NAN, NAN, 1.0, -0.0, None), doubles(NAN, 1.0, NAN, 0.0, NAN)
    assert values(call(operator, D, E), d=d, e=e) == expected
    mask = evaluate_mask(call(operator, D, E), lambda column: {"d": d, "e": e}[column.name], 5)
    assert mask.tolist() == [value is True for value in expected]


@pytest.mark.parametrize("operator", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparison_with_a_constant_treats_nan_and_null_as_the_general_kernel_does(operator):
    d = doubles(NAN, 1.0, 2.0, 0.5, None, float("inf"), -0.0)
    condition = call(operator, D, Literal(1.0, DOUBLE))
    mask = evaluate_mask(condition, lambda _: d, len(d))
    assert mask.tolist() == [value is True for value in values(condition, d=d)]


def test_null_counts_as_false_in_a_mask_and_stays_null_in_values():
    condition = call("gt", X, Literal(1, INT))
    assert values(condition, i=ints(1, 2, None)) == [False, True, None]
    assert evaluate_mask(condition, lambda _: ints(1, 2, None), 3).tolist() == [False, True, False]


def test_sliced_columns_are_read_at_their_offset():
    i = ints(9, 9, 1, None, 5)[2:]
    assert evaluate_mask(call("gt", X, Literal(2, INT)), lambda _: i, 3).tolist() == [False, False, True]
    assert values(call("mod", X, Literal(2, INT), type=INT), i=i) == [1, None, 1]
    price = pa.array([Decimal("9.99"), Decimal("1.25"), None], pa.decimal128(5, 2))[1:]
    cast = call("cast", Column("a", "p", SqlType("decimal", 5, 2)), type=DOUBLE)
    assert values(cast, p=price) == [1.25, None]


QUOTIENT = call("div", call("cast", X, type=DOUBLE), call("cast", Y, type=DOUBLE), type=DOUBLE)


def test_division_by_zero_fails_only_beside_a_value():
    assert values(QUOTIENT, i=ints(None, 6), j=ints(0, 3)) == [None, 2.0]
    with pytest.raises(EvaluationError, match="division by zero") as caught:
        values(QUOTIENT, i=ints(1), j=ints(0))
    assert "nullif" in caught.value.hint
    assert caught.value.where == "CAST(i AS DOUBLE) / CAST(j AS DOUBLE)"


@pytest.mark.parametrize(
    ("guarded", "expected"),
    [
        (call("and", call("ne", Y, Literal(0, INT)), call("gt", QUOTIENT, Literal(1.0, DOUBLE))), [False, True, None]),
        (call("or", call("eq", Y, Literal(0, INT)), call("gt", QUOTIENT, Literal(1.0, DOUBLE))), [True, True, None]),
        (call("case", call("ne", Y, Literal(0, INT)), QUOTIENT, Literal(0.0, DOUBLE), type=DOUBLE), [0.0, 2.0, 0.0]),
    ],
)
def test_branch_that_is_not_taken_cannot_fail(guarded, expected):
    assert values(guarded, i=ints(6, 6, 6), j=ints(0, 3, None)) == expected


def test_second_branch_is_reached_only_where_the_first_condition_fails():
    first, second = call("eq", Y, Literal(0, INT)), call("gt", QUOTIENT, Literal(1.0, DOUBLE))
    case = call("case", first, Literal("none", STRING), second, Literal("much", STRING), S, type=STRING)
    assert values(case, i=ints(6, 6, 1), j=ints(0, 3, 2), s=pa.array(["x", "y", "z"])) == ["none", "much", "z"]


def test_coalesce_reaches_its_next_argument_only_for_nulls():
    expression = call("coalesce", D, QUOTIENT, type=DOUBLE)
    assert values(expression, d=doubles(1.0, None), i=ints(1, 6), j=ints(0, 3)) == [1.0, 2.0]
    with pytest.raises(EvaluationError):
        values(expression, d=doubles(None), i=ints(1), j=ints(0))


def test_right_operand_is_not_reached_beside_a_null():
    expression = call("add", D, QUOTIENT, type=DOUBLE)
    assert values(expression, d=doubles(None, 1.0), i=ints(1, 6), j=ints(0, 3)) == [None, 3.0]


def test_an_operand_that_can_fail_is_no_null_beside_one_for_the_null_safe_comparison():
    same = call("eq_null_safe", X, call("add", Y, Literal(1, INT), type=INT))
    columns = {"i": ints(None, 2, None, 4), "j": ints(1, 1, None, 9)}
    assert values(same, **columns) == [False, True, True, False]
    assert values(call("not", same), **columns) == [True, False, False, True]
    with pytest.raises(EvaluationError, match="division by zero"):
        values(call("eq_null_safe", D, QUOTIENT), d=doubles(None), i=ints(1), j=ints(0))


def test_locate_asks_for_its_start_first():
    start = call("intdiv", call("cast", X, type=BIGINT), call("cast", Y, type=BIGINT), type=BIGINT)
    found = call("locate", Literal("a", STRING), S, call("cast", start, type=INT), type=INT)
    columns = {"s": pa.array(["ba", None, None, "ba"]), "i": ints(1, 1, None, None), "j": ints(1, 1, 1, 0)}
    assert values(found, **columns) == [2, None, 0, 0]
    with pytest.raises(EvaluationError, match="division by zero"):
        values(found, s=pa.array([None], pa.string()), i=ints(1), j=ints(0))


MUCH = call("gt", QUOTIENT, Literal(1.0, DOUBLE))
POSITIVE = call("gt", D, Literal(0.0, DOUBLE))


@pytest.mark.parametrize(
    ("condition", "passed"),
    [
        (call("and", POSITIVE, MUCH), [False, True, False]),
        (call("and", call("is_not_null", X), call("and", POSITIVE, MUCH)), [False, True, False]),
        (call("and", call("and", POSITIVE, MUCH), call("lt", X, Literal(9, INT))), [False, True, False]),
        (call("or", call("and", POSITIVE, MUCH), call("lt", X, Literal(9, INT))), None),
        (call("or", call("lt", X, Literal(0, INT)), call("and", POSITIVE, MUCH)), None),
        (call("not", call("and", POSITIVE, MUCH)), None),
        (call("is_not_null", call("and", POSITIVE, MUCH)), None),
    ],
)
def test_a_filter_stops_at_a_null_conjunct_and_a_value_does_not(condition: Call, passed: list[bool] | None):
    columns = {"d": doubles(None, 1.0, -1.0), "i": ints(6, 6, 6), "j": ints(0, 3, 0)}
    with pytest.raises(EvaluationError, match="division by zero"):
        values(condition, **columns)
    if passed is None:
        with pytest.raises(EvaluationError, match="division by zero"):
            evaluate_mask(condition, lambda column: columns[column.name], 3)
    else:
        assert evaluate_mask(condition, lambda column: columns[column.name], 3).tolist() == passed


@pytest.mark.parametrize("function", ["floor", "ceil"])
@pytest.mark.parametrize("sql_type", [DOUBLE, FLOAT])
def test_whole_numbers_end_below_two_to_the_63(function: str, sql_type: SqlType):
    expression = call(function, Column("a", "n", sql_type), type=BIGINT)
    column = pa.array([-(2.0**63), 2.0**62, None], arrow_type(sql_type))
    assert values(expression, n=column) == [-(2**63), 2**62, None]
    with pytest.raises(EvaluationError, match="bigint overflow"):
        values(expression, n=pa.array([2.0**63], arrow_type(sql_type)))


@pytest.mark.parametrize(
    ("expression", "columns", "what"),
    [
        (call("add", X, Y, type=INT), {"i": ints(2**31 - 1), "j": ints(1)}, "int overflow"),
        (call("neg", X, type=INT), {"i": ints(-(2**31))}, "int overflow"),
        (call("cast", D, type=INT), {"d": doubles(3e9)}, "does not fit int"),
        (call("cast", D, type=BIGINT), {"d": doubles(NAN)}, "bigint overflow"),
        (call("cast", S, type=INT), {"s": pa.array(["1", "x1"])}, "'x1' is no int"),
        (call("cast", S, type=DATE), {"s": pa.array(["2023-02-29"])}, "'2023-02-29' is no date"),
        (call("cast", X, type=SqlType("decimal", 3, 1)), {"i": ints(100)}, "does not fit decimal"),
    ],
)
def test_failure_says_what_went_wrong(expression, columns, what):
    with pytest.raises(EvaluationError, match=what):
        values(expression, **columns)


@pytest.mark.parametrize("length", [0, 1])
@pytest.mark.parametrize(
    "expression",
    [
        QUOTIENT,
        call("and", call("ne", Y, Literal(0, INT)), call("gt", QUOTIENT, Literal(1.0, DOUBLE))),
        call("case", call("gt", X, Y), X, Literal(0, INT), type=INT),
        call("intdiv", call("cast", X, type=BIGINT), Literal(2, BIGINT), type=BIGINT),
        call("cast", call("cast", X, type=SqlType("decimal", 12, 2)), type=DOUBLE),
        call("upper", S, type=STRING),
        call("in", X, Literal(1, INT), Literal(None, INT)),
        call("like", S, Literal("%a_", STRING), Literal("\\", STRING)),
        call("round", D, Literal(2, INT), type=DOUBLE),
        call("date_add", Literal(datetime.date(2024, 2, 28), DATE), X, type=DATE),
        Literal("x", STRING),
        Literal(None, INT),
    ],
)
def test_batches_of_no_row_and_of_one_row_work(expression, length):
    columns = {"i": ints(4), "j": ints(2), "d": doubles(1.5), "s": pa.array(["bab"])}
    result = evaluate(expression, lambda column: columns[column.name][:length], length)
    assert len(result) == length
    assert result.type == arrow_type(expression.type)


def test_large_strings_dictionaries_and_chunks_are_read_as_strings():
    condition = call("eq", S, Literal("a", STRING))
    plain = pa.array(["a", "b", None])
    for column in (plain.cast(pa.large_string()), plain.dictionary_encode(), pa.chunked_array([plain[:1], plain[1:]])):
        assert evaluate(condition, lambda _, column=column: column, 3).to_pylist() == [True, False, None]


def test_window_is_a_struct_of_start_and_end():
    start, end = Column("a", "window.start", TIMESTAMP), Column("a", "window.end", TIMESTAMP)
    moments = {
        "window.start": pa.array([0], pa.timestamp("us", "UTC")),
        "window.end": pa.array([5], pa.timestamp("us", "UTC")),
    }
    result = evaluate(call("struct", start, end, type=WINDOW), lambda column: moments[column.name], 1)
    assert result.type == arrow_type(WINDOW)
    assert result.field("end").to_pylist() == moments["window.end"].to_pylist()


def test_wall_clock_in_a_gap_moves_on_by_the_gap():
    ntz = Column("a", "n", TIMESTAMP_NTZ)
    gap = pa.array([datetime.datetime(2024, 3, 31, 2, 30), None], pa.timestamp("us"))  # noqa: DTZ001 - has no zone
    result = evaluate(call("cast", ntz, type=TIMESTAMP), lambda _: gap, 2, timezone="Europe/Berlin")
    assert result.cast(pa.timestamp("us", "UTC")).to_pylist()[0].isoformat() == "2024-03-31T01:30:00+00:00"
    assert result.to_pylist()[1] is None


TYPES = [BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ]


@pytest.mark.parametrize("sql_type", [*TYPES, SqlType("decimal", 38, 10)])
def test_types_survive_the_way_to_arrow_and_back(sql_type):
    assert sql_type_of(arrow_type(sql_type, "Europe/Berlin")) == sql_type


@pytest.mark.parametrize(
    "data_type",
    [
        pa.list_(pa.int32()),
        pa.binary(),
        pa.uint32(),
        pa.timestamp("ns"),
        pa.struct([("x", pa.int8())]),
        pa.decimal128(5, -2),
    ],
)
def test_types_that_streams_cannot_have_are_refused_with_a_hint(data_type):
    with pytest.raises(StreamError) as caught:
        sql_type_of(data_type)
    assert caught.value.hint


def test_comparison_with_a_constant_takes_hardly_longer_than_numpy():
    # Work of this thread by turns, so that a busy machine slows both; the general kernels take ten times as long.
    whole, fractional = np.arange(2_000_000, dtype=np.int32), np.arange(2_000_000, dtype=np.float64)
    cases = ((call("gt", X, Literal(5, INT)), whole), (call("ge", D, Literal(5.0, DOUBLE)), fractional))
    for condition, numbers in cases:
        column = pa.array(numbers)
        pairs = [
            (
                _seconds(lambda n=numbers: n > 5),
                _seconds(lambda c=condition, a=column: evaluate_mask(c, lambda _: a, len(a))),
            )
            for _ in range(9)
        ]
        assert min(ours for _, ours in pairs) < 5 * min(plain for plain, _ in pairs)


def _seconds(action: Callable[[], object]) -> float:
    began = time.thread_time()
    action()
    return time.thread_time() - began


@pytest.mark.parametrize(
    ("digits", "rounded"),
    [(2**31 - 1, [1e308, 0.125, 5e-324]), (300, [1e308, 0.125, 0.0]), (2, [1e308, 0.13, 0.0]), (-(2**31), [0.0] * 3)],
)
def test_rounding_to_more_digits_than_a_number_has_leaves_it(digits: int, rounded: list[float]):
    rounding = call("round", D, Literal(digits, INT), type=DOUBLE)
    assert values(rounding, d=doubles(1e308, 0.125, 5e-324)) == rounded


def test_a_number_beyond_all_digits_of_a_decimal_says_so():
    with pytest.raises(EvaluationError, match="does not fit"):
        values(call("cast", D, type=SqlType("decimal", 38, 38)), d=doubles(1e308))
