"""Decimal arithmetic with Spark's precision, scale and rounding.

Spark computes with 39 significant digits (multiplication and division cut there), rounds the result
half up to its scale, and fails if its precision is exceeded. Arrow's 256-bit decimals do the same
for operands whose product fits; the rest goes through Python's decimals, row by row.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.evaluate.rows import Rows, Value, as_array, fail
from dovetail.query.expression import Call
from dovetail.query.types import SqlType

_SPARK_CONTEXT = decimal.Context(prec=39, rounding=decimal.ROUND_DOWN, Emax=10_000, Emin=-10_000)
_WIDE_CONTEXT = decimal.Context(prec=200, rounding=decimal.ROUND_HALF_UP, Emax=10_000, Emin=-10_000)
_OVERFLOW_HINT = "cast the operands to decimals of fewer digits, or to double"
_ZERO_HINT = "guard it: CASE WHEN divisor <> 0 THEN ... END, or use nullif(divisor, 0)"

_ARROW = {"add": pc.add, "sub": pc.subtract, "mul": pc.multiply}
_PYTHON: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "add": _WIDE_CONTEXT.add,
    "sub": _WIDE_CONTEXT.subtract,
    "mul": _SPARK_CONTEXT.multiply,
    "div": _SPARK_CONTEXT.divide,
    "mod": _WIDE_CONTEXT.remainder,
    "intdiv": _WIDE_CONTEXT.divide_int,
}


def decimal_arithmetic(args: list[Value], call: Call, rows: Rows) -> Value:
    operand_types = [arg.type for arg in call.args]
    if call.function in _ARROW and sum(t.precision for t in operand_types) < 38:
        wide = [pc.cast(as_array(arg, rows.length), _wide(t)) for arg, t in zip(args, operand_types, strict=True)]
        return fit_decimal(_ARROW[call.function](*wide), call.type)
    return _by_row(args, call, rows)


def _wide(sql_type: SqlType) -> pa.DataType:
    return pa.decimal256(sql_type.precision, sql_type.scale)


def _by_row(args: list[Value], call: Call, rows: Rows) -> Value:
    columns = [as_array(arg, rows.length).to_pylist() for arg in args]
    operate = _PYTHON[call.function]
    is_division = call.function in ("div", "mod", "intdiv")
    results: list[Decimal | int | None] = []
    for a, b in zip(*columns, strict=True):
        if a is None or b is None:
            results.append(None)
        elif is_division and not b:
            raise fail("division by zero", _ZERO_HINT)
        elif call.type.name == "decimal":
            results.append(round_decimal(operate(a, b), call.type))
        else:
            results.append(_whole(operate(a, b)))
    return pa.array(results, arrow_type(call.type))


def _whole(value: Decimal) -> int:
    whole = int(value)
    if not -(1 << 63) <= whole < 1 << 63:
        raise fail("DIV: bigint overflow", _OVERFLOW_HINT)
    return whole


def round_decimal(value: Decimal, target: SqlType) -> Decimal:
    """`value` half up to the scale of `target`; fails if it has too many digits."""
    # So large that not even the wide context has its digits.
    if value and value.adjusted() >= target.precision:
        raise fail(f"{value} does not fit {target}", _OVERFLOW_HINT)
    rounded = value.quantize(Decimal(1).scaleb(-target.scale), decimal.ROUND_HALF_UP, _WIDE_CONTEXT)
    if len(rounded.as_tuple().digits) > target.precision:
        raise fail(f"{value} does not fit {target}", _OVERFLOW_HINT)
    return rounded


def fit_decimal(value: pa.Array, target: SqlType) -> pa.Array:
    """A 256-bit decimal rounded half up to `target`; fails if some value has too many digits."""
    wanted = arrow_type(target)
    if value.type.scale > target.scale:
        # One digit more than the value has, because rounding may carry.
        roomy = pa.decimal256(min(value.type.precision + 1, 76), value.type.scale)
        value = pc.round(pc.cast(value, roomy), ndigits=target.scale, round_mode="half_towards_infinity")
    try:
        return pc.cast(value, wanted)
    except pa.ArrowInvalid:
        raise fail(f"a value does not fit {target}", _OVERFLOW_HINT) from None


def decimal_negate(args: list[Value], call: Call, rows: Rows) -> Value:
    return pc.negate(args[0])


def decimal_abs(args: list[Value], call: Call, rows: Rows) -> Value:
    return pc.abs(args[0])
