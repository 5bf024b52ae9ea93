from __future__ import annotations
from collections.abc import Callable
from dovetail.kernels.evaluate_rows import Rows, Value
from dovetail.query.expression import Call
NUMBERS: dict[str, Callable[[list[Value], Call, Rows], Value]] = {}
