"""Numbers as Spark reads them. Dates and timestamps are in `dovetail.query.time_text`."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation

from dovetail.query.expression import Literal
from dovetail.query.types import BIGINT, DOUBLE, INT, MAX_DECIMAL_PRECISION, SqlType

_BITS_BY_INTEGER = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


class LiteralError(ValueError):
    """A constant that Spark would not read, or that is out of range."""


def fits_integer(value: int, sql_type: SqlType) -> bool:
    half = 1 << (_BITS_BY_INTEGER[sql_type.name] - 1)
    return -half <= value < half


MAX_EXPONENT = (1 << 31) - 1
"""Java reads no number with more, however small the number is."""


def number_literal(text: str) -> Literal:
    """`1` is an int or bigint, `1.5` a decimal, `1e0` a double.

    >>> str(number_literal("0.05").type), str(number_literal("3000000000").type)
    ('decimal(2,2)', 'bigint')
    """
    if "e" in text.lower():
        nearest = float(text)
        if not math.isfinite(nearest):
            raise LiteralError(f"{text} is beyond all doubles")
        if abs(int(text.lower().partition("e")[2])) > MAX_EXPONENT:
            raise LiteralError(f"{text} has an exponent beyond {MAX_EXPONENT:,}")
        return Literal(nearest, DOUBLE)
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise LiteralError(f"{text} is no number") from None
    if "." not in text:
        for sql_type in (INT, BIGINT):
            if fits_integer(int(value), sql_type):
                return Literal(int(value), sql_type)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    precision = max(len(digits), -exponent)
    if precision > MAX_DECIMAL_PRECISION:
        raise LiteralError(f"{text} has more than {MAX_DECIMAL_PRECISION} digits")
    return Literal(value, SqlType("decimal", precision, -exponent))
