"""CAST, with Spark's rounding, its text forms and its failures."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.core.errors import EvaluationError
from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.evaluate.decimal import fit_decimal, round_decimal
from dovetail.kernels.evaluate.numbers import bigint_from_double
from dovetail.kernels.evaluate.rows import Rows, Value, as_array, by_row, fail, from_numbers, numbers, valid_mask
from dovetail.kernels.evaluate.time import floor_divide
from dovetail.kernels.evaluate.zone import from_local, micros_of, to_local
from dovetail.query.expression import Call
from dovetail.query.time_text import (
    TimeTextError,
    date_text,
    read_days,
    read_timestamp_ntz_us,
    read_timestamp_us,
    timestamp_text,
)
from dovetail.query.types import BOOLEAN, STRING, SqlType

_BLANK = "".join(map(chr, range(0x21))) + "\x7f"
_JAVA_BLANK = "".join(map(chr, range(0x21)))
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_DOUBLE = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[dDfF]?", re.ASCII)
_HEX_DOUBLE = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+)[dDfF]?", re.ASCII)
_SPECIAL_DOUBLES = {
    **dict.fromkeys(("inf", "+inf", "infinity", "+infinity"), float("inf")),
    **dict.fromkeys(("-inf", "-infinity"), float("-inf")),
    "nan": float("nan"),
}
# Java's BigDecimal reads the digits of all scripts, as long as one fits 16 bits.
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE]([+-]?\d+))?")
_LAST_SHORT = "\uffff"
_LAST_EXPONENT = 2**31 - 1
_BEYOND_FLOATS = 2.0**128
_BOOLEANS = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "0"), False),
}
_TEXT_HINT = "guard it with CASE WHEN, or clean the text in the DataFrame before create_stream"
_EXACT = Context(prec=400, Emax=100_000, Emin=-100_000)
_EXACT_DOUBLE_DIGITS = 15  # integers of so many digits, and powers of ten up to 22, are exact doubles
_EXACT_POWER = 22


def cast_value(args: list[Value], call: Call, rows: Rows) -> Value:
    value, source, target = args[0], call.args[0].type, call.type
    if isinstance(value, pa.Scalar) and not value.is_valid:
        return pa.scalar(None, arrow_type(target, rows.timezone))
    if target == STRING:
        return _to_string(value, source, rows)
    if source == STRING:
        return _from_string(value, target, rows)
    if source.name in ("date", "timestamp", "timestamp_ntz"):
        return _from_time(value, source, target, rows)
    array = as_array(value, rows.length)
    if target == BOOLEAN:
        return pc.not_equal(array, pa.scalar(0, array.type)) if source.name != "decimal" else _decimal_test(array)
    if source == BOOLEAN:
        array, source = pc.cast(array, pa.int8()), SqlType("tinyint")
    return _number(array, source, target, call)


def _decimal_test(array: pa.Array) -> pa.Array:
    return pc.not_equal(array, pa.scalar(Decimal(0), array.type))


def _number(array: pa.Array, source: SqlType, target: SqlType, call: Call) -> Value:
    if source.name == "decimal":
        return _from_decimal(array, source, target)
    if target.name == "decimal":
        return _double_to_decimal(array, source, target) if source.is_floating else _int_to_decimal(array, target)
    if target.is_floating:
        with np.errstate(all="ignore"):
            values = numbers(array).astype(np.float32 if target.name == "float" else np.float64)
        return from_numbers(values, arrow_type(target), valid_mask(array, len(array)))
    if source.is_floating:
        array = _double_to_bigint(array, target, call)
    return _narrow(array, source, target)


def _narrow(array: pa.Array, source: SqlType, target: SqlType) -> Value:
    try:
        return pc.cast(array, arrow_type(target))
    except pa.ArrowInvalid:
        raise _does_not_fit(source, target) from None


def _does_not_fit(source: SqlType, target: SqlType) -> EvaluationError:
    hint = f"cast to a wider type than {target}, or guard it with CASE WHEN"
    return fail(f"CAST: a value of {source} does not fit {target}", hint)


def _double_to_bigint(array: pa.Array, target: SqlType, call: Call) -> pa.Array:
    """Towards zero; what lies within one of the range's ends still fits, as in Java."""
    values = numbers(array).astype(np.float64)
    with np.errstate(all="ignore"):
        whole = np.trunc(values)
    return bigint_from_double(whole, valid_mask(array, len(array)), call)


def _int_to_decimal(array: pa.Array, target: SqlType) -> pa.Array:
    wide = pc.cast(pc.cast(array, pa.int64()), pa.decimal256(19, 0))
    return fit_decimal(pc.cast(wide, pa.decimal256(19 + target.scale, target.scale)), target)


def _double_to_decimal(array: pa.Array, source: SqlType, target: SqlType) -> pa.Array:
    """By the digits that Spark prints the number with; NaN and infinities give NULL, even under ANSI mode."""

    def convert(value: float | None) -> Decimal | None:
        if value is None or not math.isfinite(value):
            return None
        return round_decimal(Decimal(repr(value)), target)

    return pa.array(map(convert, pc.cast(array, pa.float64()).to_pylist()), arrow_type(target))


def _from_decimal(array: pa.Array, source: SqlType, target: SqlType) -> Value:
    if target.name == "decimal":
        return fit_decimal(pc.cast(array, pa.decimal256(source.precision, source.scale)), target)
    if target.is_floating:
        return _decimal_to_floating(array, source, target)
    wide = pc.cast(array, pa.decimal256(source.precision, source.scale))
    whole = pc.cast(pc.trunc(wide), pa.decimal256(max(source.precision - source.scale, 1), 0))
    return _narrow(whole, source, target)


def _decimal_to_floating(array: pa.Array, source: SqlType, target: SqlType) -> pa.Array:
    """Correctly rounded, as Java's BigDecimal does it; Arrow's own cast may be off by a digit."""
    if target.name == "double" and source.precision <= _EXACT_DOUBLE_DIGITS and source.scale <= _EXACT_POWER:
        unscaled = np.frombuffer(array.buffers()[1], np.int64)[::2][array.offset : array.offset + len(array)]
        return from_numbers(unscaled / 10.0**source.scale, pa.float64(), valid_mask(array, len(array)))
    values = [None if value is None else float(value) for value in array.to_pylist()]
    return pa.array(values, pa.float64()).cast(arrow_type(target), safe=False)


def _from_time(value: Value, source: SqlType, target: SqlType, rows: Rows) -> Value:
    if target.name == "bigint":
        return floor_divide(micros_of(value), 1_000_000)
    if source.name == "date":
        local = pc.cast(value, pa.timestamp("us"))
    elif target.name == "date":
        days = floor_divide(micros_of(to_local(value, rows.timezone)), 86_400_000_000)
        return pc.cast(pc.cast(days, pa.int32()), pa.date32())
    else:
        local = to_local(value, rows.timezone)
    return from_local(local, rows.timezone) if target.name == "timestamp" else local


def _to_string(value: Value, source: SqlType, rows: Rows) -> Value:
    if source.is_integer or source == BOOLEAN:
        return pc.cast(value, pa.string())
    if source.name == "decimal":
        return by_row(lambda x: format(x, "f"), [value], rows, pa.string())
    if source.name == "date":
        return by_row(date_text, [pc.cast(value, pa.int32())], rows, pa.string())
    local = to_local(value, rows.timezone)
    return by_row(timestamp_text, [micros_of(local)], rows, pa.string())


def _from_string(value: Value, target: SqlType, rows: Rows) -> Value:
    reader = _reader(target, rows.timezone)

    def read(text: str) -> object:
        try:
            return reader(text)
        except TimeTextError as error:
            raise fail(f"CAST to {target}: {error}", _TEXT_HINT) from None
        except (ValueError, ArithmeticError):
            raise fail(f"CAST: {text!r} is no {target}", _TEXT_HINT) from None

    if target.is_time or target.name == "date":
        counted = by_row(read, [value], rows, pa.int64() if target.is_time else pa.int32())
        return pc.cast(counted, arrow_type(target, rows.timezone))
    return by_row(read, [value], rows, arrow_type(target, rows.timezone))


def _reader(target: SqlType, timezone: str) -> Callable[[str], object]:
    if target.is_integer:
        half = 1 << {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}[target.name]
        return lambda text: _read_integer(text, half)
    readers: dict[str, Callable[[str], object]] = {
        "float": _read_float,
        "double": _read_double,
        "decimal": lambda text: _read_decimal(text, target),
        "boolean": _read_boolean,
        "date": read_days,
        "timestamp": lambda text: read_timestamp_us(text, timezone),
        "timestamp_ntz": read_timestamp_ntz_us,
    }
    return readers[target.name]


def _read_integer(text: str, half: int) -> int:
    trimmed = text.strip(_BLANK)
    if not _INTEGER.fullmatch(trimmed) or not -half <= int(trimmed) < half:
        raise ValueError(text)
    return int(trimmed)


def _read_double(text: str) -> float:
    trimmed = text.strip(_JAVA_BLANK)
    if trimmed in ("+NaN", "-NaN"):
        return math.nan
    special = _SPECIAL_DOUBLES.get(trimmed.lower())
    if special is not None:
        return special
    match = _DOUBLE.fullmatch(trimmed)
    if match is not None:
        return float(match[1])
    match = _HEX_DOUBLE.fullmatch(trimmed)
    if match is None:
        raise ValueError(text)
    try:
        return float.fromhex(match[1])
    except OverflowError:
        return math.copysign(math.inf, -1 if trimmed.startswith("-") else 1)


def _read_float(text: str) -> float:
    """Rounded once, from the digits: a double that lies in the middle of two floats tells too little of them."""
    double = _read_double(text)
    if not math.isfinite(double):
        return double
    magnitude = abs(double)
    with np.errstate(over="ignore"):
        nearest = np.float32(magnitude)
        below = nearest if float(nearest) <= magnitude else np.nextafter(nearest, np.float32(0))
        above = np.nextafter(below, np.float32(math.inf))
    match = _DOUBLE.fullmatch(text.strip(_JAVA_BLANK))
    is_in_the_middle = (float(below) + min(float(above), _BEYOND_FLOATS)) / 2 == magnitude
    if match is None or not is_in_the_middle:
        return math.copysign(float(nearest), double)
    rest = abs(Fraction(_EXACT.create_decimal(match[1]))) - Fraction(magnitude)
    rounded = nearest if rest == 0 else above if rest > 0 else below
    return math.copysign(float(rounded), double)


def _read_decimal(text: str, target: SqlType) -> Decimal:
    trimmed = text.strip(_JAVA_BLANK)
    match = _DECIMAL.fullmatch(trimmed)
    if match is None or max(trimmed) > _LAST_SHORT or abs(int(match[1] or 0)) > _LAST_EXPONENT:
        raise ValueError(text)
    return round_decimal(_EXACT.create_decimal(trimmed), target)


def _read_boolean(text: str) -> bool:
    value = _BOOLEANS.get(text.strip(_BLANK).lower())
    if value is None:
        raise ValueError(text)
    return value
