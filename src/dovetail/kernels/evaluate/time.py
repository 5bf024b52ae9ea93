"""Dates and timestamps: arithmetic, fields, truncation. Fields are those of the session's time zone."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.evaluate.far_times import near_times
from dovetail.kernels.evaluate.rows import Rows, Value, as_array, fail
from dovetail.kernels.evaluate.zone import from_moved_local, micros_of, to_local
from dovetail.query.expression import Call, Literal
from dovetail.query.time_text import has_offset

Function = Callable[[list[Value], Call, Rows], Value]

_DAY_US = 86_400_000_000


def _checked(kernel: Callable[[Value, Value], Value], a: Value, b: Value, what: str) -> Value:
    try:
        return kernel(a, b)
    except pa.ArrowInvalid:
        raise fail(f"{what} overflow", "keep times within the years 1 to 9999") from None


def _time_add(args: list[Value], call: Call, rows: Rows) -> Value:
    interval = call.args[1]
    start, shift = args
    if call.type.name == "timestamp" and has_offset(rows.timezone) and isinstance(interval, Literal):
        # Whole days are days of the calendar in the session's zone, the rest is elapsed time.
        days_us = int(interval.value / _DAY_US) * _DAY_US
        if days_us:
            moved = pc.add(micros_of(to_local(start, rows.timezone)), pa.scalar(days_us))
            start = from_moved_local(pc.cast(moved, pa.timestamp("us")), start, rows.timezone)
            shift = pa.scalar(interval.value - days_us, pa.duration("us"))
    return _elapse([start, shift], call, rows)


def _elapse(args: list[Value], call: Call, rows: Rows) -> Value:
    """So much later, whatever the clocks of a zone do meanwhile; a window ends so long after its start."""
    total = _checked(pc.add_checked, micros_of(args[0]), micros_of(args[1]), "timestamp")
    return pc.cast(total, arrow_type(call.type, rows.timezone))


def _time_diff(args: list[Value], call: Call, rows: Rows) -> Value:
    difference = _checked(pc.subtract_checked, micros_of(args[0]), micros_of(args[1]), "interval")
    return pc.cast(difference, pa.duration("us"))


def _date_shift(kernel: Callable[[Value, Value], Value]) -> Function:
    def apply(args: list[Value], call: Call, rows: Rows) -> Value:
        days = _checked(kernel, pc.cast(args[0], pa.int32()), args[1], "date")
        return pc.cast(days, pa.date32())

    return apply


def _date_diff(args: list[Value], call: Call, rows: Rows) -> Value:
    return pc.subtract(pc.cast(args[0], pa.int32()), pc.cast(args[1], pa.int32()))


def _field(kernel: Callable[[Value], Value], *, counts_years: bool = False) -> Function:
    def field(value: Value, call: Call, rows: Rows) -> Value:
        near = near_times(value)
        moment = near.times if pa.types.is_date(value.type) else to_local(near.times, rows.timezone)
        found = pc.cast(kernel(moment), pa.int32())
        return near.true_years(found) if counts_years else found

    return _of_arrays(field)


def _date_trunc(value: Value, call: Call, rows: Rows) -> Value:
    unit = call.args[0]
    assert isinstance(unit, Literal)
    if unit.value == "microsecond":
        return value
    near = near_times(value)
    local = to_local(near.times, rows.timezone)
    truncated = from_moved_local(pc.floor_temporal(local, unit=unit.value), near.times, rows.timezone)
    return near.moved_back(truncated)


def _of_arrays(function: Callable[[Value, Call, Rows], Value]) -> Function:
    """Of the last argument; of one time for all rows the one answer."""

    def apply(args: list[Value], call: Call, rows: Rows) -> Value:
        value = args[-1]
        if isinstance(value, pa.Scalar):
            return function(pa.repeat(value, 1), call, rows)[0]
        return function(as_array(value, rows.length), call, rows)

    return apply


def _unix(unit_us: int) -> Function:
    def apply(args: list[Value], call: Call, rows: Rows) -> Value:
        return floor_divide(micros_of(args[0]), unit_us)

    return apply


def _unix_timestamp(args: list[Value], call: Call, rows: Rows) -> Value:
    """Unlike `unix_seconds`, Spark cuts this one towards zero."""
    return pc.divide(micros_of(args[0]), pa.scalar(1_000_000, pa.int64()))


def floor_divide(micros: Value, unit_us: int) -> Value:
    """Towards the past; Arrow's own division goes towards zero."""
    if unit_us == 1:
        return micros
    quotient = pc.divide(micros, pa.scalar(unit_us, pa.int64()))
    is_above = pc.greater(pc.multiply(quotient, pa.scalar(unit_us, pa.int64())), micros)
    return pc.subtract(quotient, pc.cast(is_above, pa.int64()))


def _timestamp_from(args: list[Value], call: Call, rows: Rows) -> Value:
    unit = call.args[1]
    assert isinstance(unit, Literal)
    micros = _checked(pc.multiply_checked, args[0], pa.scalar(unit.value, pa.int64()), "timestamp")
    return pc.cast(micros, arrow_type(call.type, rows.timezone))


TIMES: dict[str, Function] = {
    "time_add": _time_add,
    "elapse": _elapse,
    "time_diff": _time_diff,
    "date_add": _date_shift(pc.add_checked),
    "date_sub": _date_shift(pc.subtract_checked),
    "datediff": _date_diff,
    "year": _field(pc.year, counts_years=True),
    "quarter": _field(pc.quarter),
    "month": _field(pc.month),
    "day": _field(pc.day),
    "dayofyear": _field(pc.day_of_year),
    "weekofyear": _field(pc.iso_week),
    "dayofweek": _field(lambda moment: pc.day_of_week(moment, count_from_zero=False, week_start=7)),
    "weekday": _field(lambda moment: pc.day_of_week(moment, count_from_zero=True, week_start=1)),
    "hour": _field(pc.hour),
    "minute": _field(pc.minute),
    "second": _field(pc.second),
    "date_trunc": _of_arrays(_date_trunc),
    "unix_timestamp": _unix_timestamp,
    "unix_seconds": _unix(1_000_000),
    "unix_millis": _unix(1_000),
    "unix_micros": _unix(1),
    "timestamp_from": _timestamp_from,
}
