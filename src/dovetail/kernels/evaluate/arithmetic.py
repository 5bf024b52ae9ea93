"""Arithmetic of integers and floating numbers; decimals are in `evaluate_decimal`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.evaluate.decimal import decimal_abs, decimal_arithmetic, decimal_negate
from dovetail.kernels.evaluate.rows import Mask, Numbers, Rows, Value, as_array, fail, from_numbers, numbers, valid_mask
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


def _arrays(args: list[Value], rows: Rows) -> tuple[Numbers, Numbers, Numbers]:
    a, b = (as_array(arg, rows.length) for arg in args)
    return numbers(a), numbers(b), valid_mask(a, rows.length) & valid_mask(b, rows.length)


def _refuse_zero(b: Numbers, valid: Mask) -> None:
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
    if (valid & (a == np.iinfo(np.int64).min) & (b == -1)).any():
        raise fail("DIV: bigint overflow", _OVERFLOW_HINT)
    # Slots beside a NULL hold anything, so they divide by one.
    divisor = np.where(valid, b, 1)
    quotient = a // divisor
    # NumPy rounds down, Java towards zero.
    quotient += (quotient < 0) & (quotient * divisor != a)
    return from_numbers(quotient, pa.int64(), valid)


def _mod(args: list[Value], call: Call, rows: Rows) -> Value:
    a, b, valid = _arrays(args, rows)
    _refuse_zero(b, valid)
    with np.errstate(all="ignore"):
        return from_numbers(_java_remainder(a, b), arrow_type(call.type), valid)


def _java_remainder(a: Numbers, b: Numbers) -> Numbers:
    """The sign of the dividend, as in Java; the lowest number by -1 gives 0."""
    if a.dtype.kind == "f":
        remainder: Numbers = np.fmod(a, b)
        return remainder
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
