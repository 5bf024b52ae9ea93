"""Which expressions can fail on some row: overflow, division by zero, bad casts, texts that are too long."""

from __future__ import annotations

from functools import lru_cache

from dovetail.query.expression import Call, Expression
from dovetail.query.types import SqlType

_INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_FAILS_ON_EXACT = ("add", "sub", "mul", "neg", "abs", "round", "bround", "floor", "ceil")
_ALWAYS_FAILS = (
    *("div", "intdiv", "mod", "pmod"),
    *("time_add", "elapse", "time_diff", "date_add", "date_sub", "date_trunc", "timestamp_from"),
)
_GROWING = ("repeat", "lpad", "rpad", "concat", "replace")


@lru_cache(maxsize=20_000)
def can_fail(expression: Expression) -> bool:
    """Whether some row may raise. True is always safe, false must be certain."""
    if not isinstance(expression, Call):
        return False
    return fails_itself(expression) or any(can_fail(arg) for arg in expression.args)


def fails_itself(call: Call) -> bool:
    """Whether it may raise for some operands, whatever they are made of."""
    if call.function in _ALWAYS_FAILS or call.function in _GROWING:
        return True
    if call.function in _FAILS_ON_EXACT:
        return not call.type.is_floating
    if call.function == "cast":
        return not _is_widening(call.args[0].type, call.type)
    return False


def _is_widening(source: SqlType, target: SqlType) -> bool:
    if source.is_integer and target.is_integer:
        return _INTEGER_BITS[source.name] <= _INTEGER_BITS[target.name]
    if source.is_numeric and target.is_floating:
        return True
    if source.is_integer and target.name == "decimal":
        return target.precision - target.scale >= {8: 3, 16: 5, 32: 10, 64: 19}[_INTEGER_BITS[source.name]]
    if source.name == "decimal" and target.name == "decimal":
        integral_grows = target.precision - target.scale >= source.precision - source.scale
        return integral_grows and target.scale >= source.scale
    return source.name == "null" or target.name == "string" or (target.name == "boolean" and source.is_numeric)
