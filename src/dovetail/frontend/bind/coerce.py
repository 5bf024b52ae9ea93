"""Spark's implicit casts under ANSI mode (the default since Spark 4), made explicit.

Everything here returns new expressions with `cast` calls, or None where Spark or Dovetail has no
implicit cast; the binder turns None into a `TypeMismatch` that names the CAST to write.
"""

from __future__ import annotations

import struct
from decimal import Decimal

from dovetail.frontend.parse.literals import fits_integer
from dovetail.query.expression import Call, Expression, Literal
from dovetail.query.time_text import TimeTextError, is_in_calendar, read_date, read_timestamp_ntz_us, read_timestamp_us
from dovetail.query.types import (
    BIGINT,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER_NAMES,
    MAX_DECIMAL_PRECISION,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    SqlType,
)

MINIMUM_ADJUSTED_SCALE = 6
_DECIMAL_BY_INTEGER = {
    "tinyint": SqlType("decimal", 3, 0),
    "smallint": SqlType("decimal", 5, 0),
    "int": SqlType("decimal", 10, 0),
    "bigint": SqlType("decimal", 20, 0),
}


def adjusted_decimal(precision: int, scale: int) -> SqlType:
    """Spark's 38-digit rule: keep the integral digits, give up scale down to 6.

    >>> str(adjusted_decimal(77, 20))
    'decimal(38,6)'
    """
    if precision <= MAX_DECIMAL_PRECISION:
        return SqlType("decimal", precision, scale)
    integral_digits = precision - scale
    kept_scale = max(MAX_DECIMAL_PRECISION - integral_digits, min(scale, MINIMUM_ADJUSTED_SCALE))
    return SqlType("decimal", MAX_DECIMAL_PRECISION, kept_scale)


def decimal_of(sql_type: SqlType) -> SqlType:
    """The decimal that holds every value of an integer type."""
    return _DECIMAL_BY_INTEGER.get(sql_type.name, sql_type)


def decimal_of_literal(literal: Literal) -> SqlType:
    digits = max(len(str(abs(int(literal.value)))), 1)
    return SqlType("decimal", digits, 0)


def common_type(a: SqlType, b: SqlType) -> SqlType | None:
    """The type in which Spark compares, or merges branches of, these two; None if there is none we follow."""
    if b in (a, NULL):
        return a
    if a == NULL:
        return b
    if a.is_numeric and b.is_numeric:
        return _common_numeric(a, b)
    names = {a.name, b.name}
    if names <= {"date", "timestamp"} or names == {"timestamp", "timestamp_ntz"}:
        return TIMESTAMP
    if names == {"date", "timestamp_ntz"}:
        return TIMESTAMP_NTZ
    return None


def _common_numeric(a: SqlType, b: SqlType) -> SqlType | None:
    if "decimal" in (a.name, b.name):
        if a.is_floating or b.is_floating:
            return DOUBLE
        return _wider_decimal(decimal_of(a), decimal_of(b))
    if a.is_integer and b.is_integer:
        return max(a, b, key=lambda t: INTEGER_NAMES.index(t.name))
    return FLOAT if a == FLOAT and b == FLOAT else DOUBLE


def _wider_decimal(a: SqlType, b: SqlType) -> SqlType | None:
    scale = max(a.scale, b.scale)
    precision = max(a.precision - a.scale, b.precision - b.scale) + scale
    # Past 38 digits Spark drops digits of one side, and equal values may then differ: refused instead.
    return SqlType("decimal", precision, scale) if precision <= MAX_DECIMAL_PRECISION else None


def common_type_of(expressions: list[Expression]) -> SqlType | None:
    """Folded from left to right, as Spark does."""
    result: SqlType | None = NULL
    for expression in expressions:
        if result is None:
            return None
        result = common_type(result, expression.type)
    return result


def cast_to(expression: Expression, target: SqlType, timezone: str) -> Expression:
    """`expression` as `target`; casts of constants are done here where that cannot fail at run time only."""
    if expression.type == target:
        return expression
    if isinstance(expression, Literal):
        folded = _fold_cast(expression, target, timezone)
        if folded is not None:
            return folded
    return Call("cast", (expression,), target)


def _fold_cast(literal: Literal, target: SqlType, timezone: str) -> Literal | None:
    value = literal.value
    if value is None:
        return Literal(None, target)
    if literal.type.is_integer or literal.type.name == "decimal":
        return _fold_number(Decimal(value), target)
    if literal.type == STRING:
        return _fold_string(value, target, timezone)
    return None


def _fold_number(value: Decimal, target: SqlType) -> Literal | None:
    if target.is_integer:
        is_exact = value == value.to_integral_value() and fits_integer(int(value), target)
        return Literal(int(value), target) if is_exact else None
    if target == DOUBLE:
        return Literal(float(value), target)
    if target == FLOAT:
        return Literal(struct.unpack("f", struct.pack("f", float(value)))[0], target)
    if target.name == "decimal":
        rescaled = _with_scale(value, target.scale)
        fits = value.copy_abs() < Decimal(10) ** (target.precision - target.scale)
        return Literal(rescaled, target) if rescaled == value and fits else None
    return None


def _with_scale(value: Decimal, scale: int) -> Decimal:
    """`value` cut to `scale` digits. By integers: Decimal's own operators round to the context's 28 digits."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    shift = exponent + scale
    number = int("".join(map(str, digits)) or "0")
    number = number * 10**shift if shift >= 0 else number // 10**-shift
    return Decimal((sign, tuple(map(int, str(number))), -scale))


def _fold_string(text: str, target: SqlType, timezone: str) -> Literal | None:
    try:
        if target == DATE:
            return Literal(read_date(text), DATE)
        if not target.is_time:
            return None
        micros = read_timestamp_us(text, timezone) if target == TIMESTAMP else read_timestamp_ntz_us(text)
    except TimeTextError:
        return None
    return Literal(micros, target) if is_in_calendar(micros) else None


def comparable(a: Expression, b: Expression, timezone: str) -> tuple[Expression, Expression] | None:
    """Both sides in one type, so that a comparison needs no cast of its own."""
    target = common_type(a.type, b.type) or _type_beside_string_literal(a, b)
    if target is None:
        target = _literal_decimal_type(a, b)
    if target is None:
        return None
    return cast_to(a, target, timezone), cast_to(b, target, timezone)


def _type_beside_string_literal(a: Expression, b: Expression) -> SqlType | None:
    """A string constant beside a date or timestamp is read as one, as Spark does."""
    for constant, other in ((a, b), (b, a)):
        if isinstance(constant, Literal) and constant.type == STRING and other.type.name in _TIME_NAMES:
            return other.type
    return None


_TIME_NAMES = ("date", "timestamp", "timestamp_ntz")


def _literal_decimal_type(a: Expression, b: Expression) -> SqlType | None:
    """A whole constant beside a wide decimal needs only its own digits, not those of its type."""
    for constant, other in ((a, b), (b, a)):
        if isinstance(constant, Literal) and constant.type.is_integer and other.type.name == "decimal":
            return _wider_decimal(decimal_of_literal(constant), other.type)
    return None


def arithmetic_operands(
    operator: str, a: Expression, b: Expression, timezone: str
) -> tuple[Expression, Expression, SqlType] | None:
    """Operands and result type of `add`, `sub`, `mul`, `div`, `intdiv`, `mod` over numbers."""
    if not all(side.type.is_numeric or side.type == NULL for side in (a, b)):
        return None
    names = {a.type.name, b.type.name}
    if "decimal" in names and not (a.type.is_floating or b.type.is_floating):
        return _decimal_operands(operator, a, b, timezone)
    if operator == "div":
        operand: SqlType | None = DOUBLE
    elif operator == "intdiv":
        operand = BIGINT
        if a.type.is_floating or b.type.is_floating:
            return None
    else:
        operand = common_type(a.type, b.type)
        operand = DOUBLE if operand == NULL else operand
    assert operand is not None
    return cast_to(a, operand, timezone), cast_to(b, operand, timezone), operand


def _decimal_operands(
    operator: str, a: Expression, b: Expression, timezone: str
) -> tuple[Expression, Expression, SqlType]:
    a_type, b_type = (_operand_decimal(side, other) for side, other in ((a, b), (b, a)))
    result = decimal_result(operator, a_type, b_type)
    return cast_to(a, a_type, timezone), cast_to(b, b_type, timezone), result


def _operand_decimal(side: Expression, other: Expression) -> SqlType:
    if side.type == NULL:
        return decimal_of(other.type)
    if isinstance(side, Literal) and side.type.is_integer and side.value is not None:
        return decimal_of_literal(side)
    return decimal_of(side.type)


def decimal_result(operator: str, a: SqlType, b: SqlType) -> SqlType:
    """Spark's precision and scale of a decimal operation."""
    a_integral, b_integral = a.precision - a.scale, b.precision - b.scale
    if operator in ("add", "sub"):
        scale = max(a.scale, b.scale)
        return adjusted_decimal(max(a_integral, b_integral) + scale + 1, scale)
    if operator == "mul":
        return adjusted_decimal(a.precision + b.precision + 1, a.scale + b.scale)
    if operator == "mod":
        scale = max(a.scale, b.scale)
        return adjusted_decimal(min(a_integral, b_integral) + scale, scale)
    if operator == "intdiv":
        return BIGINT
    scale = max(MINIMUM_ADJUSTED_SCALE, a.scale + b.precision + 1)
    return adjusted_decimal(a_integral + b.scale + scale, scale)
