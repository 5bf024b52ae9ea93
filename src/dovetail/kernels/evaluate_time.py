"""Times: arithmetic with intervals, fields, truncation."""
from __future__ import annotations
from collections.abc import Callable
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.evaluate_rows import Rows, Value, fail
from dovetail.query.expression import Call


def _micros(value: Value) -> Value:
    return pc.cast(value, pa.int64())


def _time_add(args: list[Value], call: Call, rows: Rows) -> Value:
    try:
        total = pc.add_checked(_micros(args[0]), _micros(args[1]))
    except pa.ArrowInvalid:
        raise fail("timestamp overflow") from None
    return pc.cast(total, arrow_type(call.type, rows.timezone))


def _time_diff(args: list[Value], call: Call, rows: Rows) -> Value:
    try:
        total = pc.subtract_checked(_micros(args[0]), _micros(args[1]))
    except pa.ArrowInvalid:
        raise fail("interval overflow") from None
    return pc.cast(total, arrow_type(call.type, rows.timezone))


TIMES: dict[str, Callable[[list[Value], Call, Rows], Value]] = {"time_add": _time_add, "time_diff": _time_diff}
