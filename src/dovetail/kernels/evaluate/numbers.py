"""Rounding, signs, roots."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.evaluate.decimal import round_decimal
from dovetail.kernels.evaluate.rows import (
    Mask,
    Numbers,
    Rows,
    Value,
    as_array,
    by_row,
    fail,
    from_numbers,
    numbers,
    valid_mask,
)
from dovetail.query.expression import Call, Literal

Function = Callable[[list[Value], Call, Rows], Value]

_CONTEXT = decimal.Context(prec=400, rounding=decimal.ROUND_HALF_UP, Emax=10_000, Emin=-10_000)
_MOST_DIGITS = 350
"""No number has more before or after its point; to round to more is to round to these."""
_BIGINT_EDGE = 2.0**63
_OVERFLOW_HINT = "cast the argument to decimal(38,s) first"


def _on_doubles(function: Callable[[Numbers], Numbers]) -> Function:
    def apply(args: list[Value], call: Call, rows: Rows) -> Value:
        array = as_array(args[0], rows.length)
        with np.errstate(all="ignore"):
            return from_numbers(function(numbers(array)), pa.float64(), valid_mask(array, rows.length))

    return apply


def _sign(values: Numbers) -> Numbers:
    # Java's signum keeps NaN and the sign of zero; NumPy's loses the latter.
    return np.where((values == 0) | np.isnan(values), values, np.sign(values))


def _whole(round_down: bool) -> Function:
    rounding = decimal.ROUND_FLOOR if round_down else decimal.ROUND_CEILING
    to_whole = np.floor if round_down else np.ceil

    def apply(args: list[Value], call: Call, rows: Rows) -> Value:
        if call.type.name == "decimal":
            one = Decimal(1)
            return by_row(lambda x: x.quantize(one, rounding, _CONTEXT), args, rows, arrow_type(call.type))
        array = as_array(args[0], rows.length)
        valid = valid_mask(array, rows.length)
        with np.errstate(all="ignore"):
            whole = to_whole(numbers(array))
        # Spark gives 0 for NaN here, and refuses 2^63; a cast to bigint does neither.
        if (valid & (whole == _BIGINT_EDGE)).any():
            raise fail(f"{call.function}: bigint overflow", _OVERFLOW_HINT)
        return bigint_from_double(np.where(np.isnan(whole), 0.0, whole), valid, call)

    return apply


def bigint_from_double(whole: Numbers, valid: Mask, call: Call) -> Value:
    """2^63 itself becomes the largest bigint, as in Java; beyond it fails."""
    edge = _BIGINT_EDGE
    with np.errstate(all="ignore"):
        is_inside = (whole >= -edge) & (whole <= edge)
        if (valid & ~is_inside).any():
            raise fail(f"{call.function}: bigint overflow", _OVERFLOW_HINT)
        at_edge = whole >= edge
        values = np.where(is_inside & ~at_edge, whole, 0.0).astype(np.int64)
    values[at_edge] = np.iinfo(np.int64).max
    return from_numbers(values, pa.int64(), valid)


def _round(args: list[Value], call: Call, rows: Rows) -> Value:
    """Half up, on the decimal digits that Spark prints the number with."""
    digits_literal = call.args[1]
    assert isinstance(digits_literal, Literal)
    digits = max(-_MOST_DIGITS, min(digits_literal.value, _MOST_DIGITS))
    source = call.args[0].type
    if source.name == "double" and digits == 0:
        return _on_doubles(_round_half_up)(args, call, rows)
    wanted = arrow_type(call.type)
    if source.is_floating:
        shown = (lambda x: str(np.float32(x))) if source.name == "float" else repr
        return by_row(lambda x: _round_floating(x, shown(x), digits), args[:1], rows, wanted)
    step = Decimal(1).scaleb(-digits)
    if source.name == "decimal":
        return by_row(lambda x: _round_decimal(x, step, call), args[:1], rows, wanted)
    result = by_row(lambda x: int(Decimal(x).quantize(step, context=_CONTEXT)), args[:1], rows, pa.decimal128(38, 0))
    try:
        return pc.cast(result, wanted)
    except pa.ArrowInvalid:
        raise fail(f"round: {call.type} overflow", _OVERFLOW_HINT) from None


def _round_half_up(values: Numbers) -> Numbers:
    whole = np.trunc(values)
    is_up = np.abs(values - whole) >= 0.5
    return np.where(np.isfinite(values), whole + np.where(is_up, np.sign(values), 0.0) + 0.0, values)


def _round_floating(value: float, shown: str, digits: int) -> float:
    if not math.isfinite(value):
        return value
    number = Decimal(shown)
    if digits + int(number.as_tuple().exponent) >= 0:
        return value + 0.0  # it has no digit to lose
    return float(number.quantize(Decimal(1).scaleb(-digits), context=_CONTEXT)) + 0.0


def _round_decimal(value: Decimal, step: Decimal, call: Call) -> Decimal:
    return round_decimal(value.quantize(step, context=_CONTEXT), call.type)


def _power(args: list[Value], call: Call, rows: Rows) -> Value:
    exponent = call.args[1]
    assert isinstance(exponent, Literal)
    function_by_exponent: dict[float, Callable[[Numbers], Numbers]] = {
        0.0: np.ones_like,
        0.5: _square_root,
        1.0: np.positive,
        2.0: np.square,
    }
    function = function_by_exponent[exponent.value]
    return _on_doubles(function)(args, call, rows)


def _square_root(values: Numbers) -> Numbers:
    # pow(-inf, 0.5) is inf and pow(-0.0, 0.5) is 0.0, unlike sqrt.
    return np.where(np.isneginf(values), np.inf, np.sqrt(values + 0.0))


NUMBERS: dict[str, Function] = {
    "sign": _on_doubles(_sign),
    "sqrt": _on_doubles(np.sqrt),
    "floor": _whole(round_down=True),
    "ceil": _whole(round_down=False),
    "round": _round,
    "power": _power,
}
