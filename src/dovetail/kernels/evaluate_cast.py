from __future__ import annotations
import pyarrow as pa
import pyarrow.compute as pc
from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.evaluate_rows import Rows, Value, fail
from dovetail.query.expression import Call


def cast_value(args: list[Value], call: Call, rows: Rows) -> Value:
    try:
        return pc.cast(args[0], arrow_type(call.type, rows.timezone))
    except pa.ArrowInvalid:
        raise fail(f"a value of {call.args[0].type} does not fit {call.type}") from None
