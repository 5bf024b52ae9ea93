"""Arithmetic of integers and floating numbers; decimals are in `evaluate_decimal`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.evaluate_decimal import decimal_abs, decimal_arithmetic, decimal_negate
from dovetail.kernels.evaluate_rows import Rows, Value, as_array, fail, from_numbers, numbers, valid_mask
from dovetail.query.expression import Call

Function = Callable[[list[Value], Call, Rows], Value]

_OVERFLOW_HINT = "cast an operand to a wider type, for example CAST(x AS BIGINT) or CAST(x AS DECIMAL(38,0))"
_ZERO_HINT = "guard it: CASE WHEN divisor <> 0 THEN ... END, or use nullif(divisor, 0)"


def _checked(exact: Callable[..., Value], floating: Callable[..., Value]) -> Function:
    def function(args: list[Value], call: Call, rows: Rows) -> Value:
        if call.type.is_floating:
            return floating(*args)
        try:
            return exact(*args)
        except pa.ArrowInvalid:
            raise fail(f"{call.function}: {call.type} overflow", _OVERFLOW_HINT) from None

    return function


def _or_decimal(plain: Function) -> Function:
    def function(args: list[Value], call: Call, rows: Rows) -> Value:
        if call.args[0].type.name == "decimal":
            return decimal_arithmetic(args, call, rows)
        return plain(args, call, rows)

    return function


def _arrays(args: list[Value], rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, b = (as_array(arg, rows.length) for arg in args)
    return numbers(a), numbers(b), valid_mask(a, rows.length) & valid_mask(b, rows.length)


def _refuse_zero(b: np.ndarray, valid: np.ndarray) -> None:
    if (valid & (b == 0)).any():
        raise fail("division by zero", _ZERO_HINT)


def _div(args: list[Value], call: Call, rows: Rows) -> Value:
    a, b, valid = _arrays(args, rows)
    _refuse_zero(b, valid)
    with np.errstate(all="ignore"):
        return from_numbers(a / b, arrow_type(call.type), valid)


def _intdiv(args: list[Value], call: Call, rows: Rows) -> Value:
    a, b, valid = _arrays(args, rows)
    _refuse_zero(b, valid)
    lowest = np.iinfo(np.int64).min
    if (valid & (a == lowest) & (b == -1)).any():
        raise fail("DIV: bigint overflow", _OVERFLOW_HINT)
    return pc.divide(*(as_array(arg, rows.length) for arg in _without_zero(args, b, rows)))


def _without_zero(args: list[Value], b: np.ndarray, rows: Rows) -> list[Value]:
    """Slots beside a NULL may hold a zero, on which Arrow would fail."""
    divisor = as_array(args[1], rows.length)
    safe = pc.if_else(pa.array((b == 0) | (b == -1)), pa.scalar(None, divisor.type), divisor)
    negated = pc.negate(as_array(args[0], rows.length))
    if not (b == -1).any():
        return [args[0], safe]
    one = pa.scalar(1, divisor.type)
    is_minus = pa.array(b == -1)
    return [
        pc.if_else(is_minus, negated, as_array(args[0], rows.length)),
        pc.if_else(_valid_minus(is_minus, divisor), one, safe),
    ]


def _valid_minus(is_minus: pa.Array, divisor: pa.Array) -> pa.Array:
    return pc.and_(is_minus, pc.is_valid(divisor))


def _mod(args: list[Value], call: Call, rows: Rows) -> Value:
    a, b, valid = _arrays(args, rows)
    _refuse_zero(b, valid)
    with np.errstate(all="ignore"):
        return from_numbers(_java_remainder(a, b), arrow_type(call.type), valid)


def _java_remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The sign of the dividend, as in Java; the lowest number by -1 gives 0."""
    if a.dtype.kind == "f":
        return np.fmod(a, b)
    return np.where(b == -1, 0, np.fmod(a, np.where(b == -1, 1, b))).astype(a.dtype)


def _pmod(args: list[Value], call: Call, rows: Rows) -> Value:
    a, b, valid = _arrays(args, rows)
    _refuse_zero(b, valid)
    with np.errstate(all="ignore"):
        remainder = _java_remainder(a, b)
        positive = np.where(remainder < 0, _java_remainder(remainder + b, b), remainder)
        return from_numbers(positive.astype(a.dtype), arrow_type(call.type), valid)


def _neg(args: list[Value], call: Call, rows: Rows) -> Value:
    if call.type.name == "decimal":
        return decimal_negate(args, call, rows)
    return _checked(pc.negate_checked, pc.negate)(args, call, rows)


def _abs(args: list[Value], call: Call, rows: Rows) -> Value:
    if call.type.name == "decimal":
        return decimal_abs(args, call, rows)
    return _checked(pc.abs_checked, pc.abs)(args, call, rows)


ARITHMETIC: dict[str, Function] = {
    "add": _or_decimal(_checked(pc.add_checked, pc.add)),
    "sub": _or_decimal(_checked(pc.subtract_checked, pc.subtract)),
    "mul": _or_decimal(_checked(pc.multiply_checked, pc.multiply)),
    "div": _or_decimal(_div),
    "intdiv": _or_decimal(_intdiv),
    "mod": _or_decimal(_mod),
    "pmod": _or_decimal(_pmod),
    "neg": _neg,
    "abs": _abs,
}
