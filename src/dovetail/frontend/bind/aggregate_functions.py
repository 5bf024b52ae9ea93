"""Aggregate functions with the result types that Spark gives them in ANSI mode."""

from __future__ import annotations

from dovetail.frontend.bind.coerce import cast_to
from dovetail.frontend.bind.function_arguments import FunctionError, check_count
from dovetail.query.aggregation import Aggregate, AggregateFunction
from dovetail.query.expression import Expression, Literal
from dovetail.query.types import BIGINT, BOOLEAN, DOUBLE, MAX_DECIMAL_PRECISION, NULL, SqlType

AGGREGATES: dict[str, AggregateFunction] = {
    "count": AggregateFunction.COUNT,
    "sum": AggregateFunction.SUM,
    "avg": AggregateFunction.AVG,
    "mean": AggregateFunction.AVG,
    "min": AggregateFunction.MIN,
    "max": AggregateFunction.MAX,
    "approx_count_distinct": AggregateFunction.APPROX_COUNT_DISTINCT,
}
_SUM_DIGITS = 10
_AVG_DIGITS = 4


def aggregate_of(name: str, arguments: tuple[Expression, ...], *, is_distinct: bool) -> Aggregate:
    """The aggregate that a call means; no arguments stand for the star of COUNT(*)."""
    function = AGGREGATES[name]
    if function is AggregateFunction.COUNT:
        return _count(arguments, is_distinct=is_distinct)
    if is_distinct:
        raise FunctionError("DISTINCT", "only COUNT takes DISTINCT: leave it out, or select DISTINCT rows")
    check_count(list(arguments), 1, 1)
    argument = arguments[0]
    if argument.type.name in ("window", "interval", "null"):
        raise FunctionError(f"an argument of {argument.type}", "use a column of a number, text, date or time")
    if function in (AggregateFunction.SUM, AggregateFunction.AVG):
        if not argument.type.is_numeric:
            raise FunctionError(f"an argument of {argument.type}", "write CAST(... AS a number type)")
        widen = sum_type if function is AggregateFunction.SUM else average_type
        return Aggregate(function, arguments, widen(argument.type))
    is_count = function is AggregateFunction.APPROX_COUNT_DISTINCT
    return Aggregate(function, arguments, BIGINT if is_count else argument.type)


def sum_type(summed: SqlType) -> SqlType:
    """Ten digits more for decimals, the widest type for the others.

    >>> str(sum_type(SqlType("int"))), str(sum_type(SqlType("decimal", 30, 2)))
    ('bigint', 'decimal(38,2)')
    """
    if summed.name == "decimal":
        return SqlType("decimal", min(summed.precision + _SUM_DIGITS, MAX_DECIMAL_PRECISION), summed.scale)
    return BIGINT if summed.is_integer else DOUBLE


def average_type(averaged: SqlType) -> SqlType:
    """Four digits more for decimals, all of them fractional; double for the others.

    >>> str(average_type(SqlType("int"))), str(average_type(SqlType("decimal", 10, 2)))
    ('double', 'decimal(14,6)')
    """
    if averaged.name != "decimal":
        return DOUBLE
    precision, scale = (
        min(digits + _AVG_DIGITS, MAX_DECIMAL_PRECISION) for digits in (averaged.precision, averaged.scale)
    )
    return SqlType("decimal", precision, scale)


def _count(arguments: tuple[Expression, ...], *, is_distinct: bool) -> Aggregate:
    for argument in arguments:
        if argument.type.name in ("window", "interval"):
            raise FunctionError(f"an argument of {argument.type}", "count w.start, or *")
    typed = tuple(cast_to(argument, BOOLEAN, "UTC") if argument.type == NULL else argument for argument in arguments)
    if is_distinct:
        return Aggregate(AggregateFunction.COUNT_DISTINCT, typed, BIGINT)
    # A constant that is not NULL is in every row.
    counted = tuple(argument for argument in typed if not isinstance(argument, Literal) or argument.value is None)
    return Aggregate(AggregateFunction.COUNT, counted, BIGINT)
