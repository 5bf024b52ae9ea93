"""The codes of keys, wherever a task needs them: what is stored, what probes, and what is sent on must agree."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from dovetail.core.errors import ColumnTooLarge
from dovetail.kernels.evaluate.evaluate import evaluate
from dovetail.kernels.evaluate.sizes import MAX_WIDE_BYTES, WORK_BYTES
from dovetail.kernels.evaluate.work_limit import WorkClock
from dovetail.kernels.match.hash_keys import KeyCodes, concat_codes, hash_keys
from dovetail.plan.probe_tree import ProbeStep
from dovetail.plan.store_plan import IndexPlan
from dovetail.query.expression import Column, Expression

ColumnOf = Callable[[Column], pa.Array]


def key_codes(index: IndexPlan, column_of: ColumnOf, length: int, timezone: str) -> KeyCodes:
    """Of rows that are indexed."""
    return _codes(index.keys, index.placing, column_of, length, timezone)


def probing_codes(step: ProbeStep, column_of: ColumnOf, length: int, timezone: str) -> KeyCodes:
    """Of partial results that shall take the step."""
    return _codes(step.probe_keys, step.index.placing, column_of, length, timezone)


def _codes(
    keys: tuple[Expression, ...], placing: int | None, column_of: ColumnOf, length: int, timezone: str
) -> KeyCodes:
    """Without keys every row has the code 0. Long texts are made of a few rows at a time, and forgotten."""
    if not keys:
        return KeyCodes(np.zeros(length, np.uint64), None, is_exact=False)
    most_bytes = WORK_BYTES if length > 1 else MAX_WIDE_BYTES
    try:
        columns = [evaluate(key, column_of, length, timezone=timezone, most_bytes=most_bytes) for key in keys]
    except ColumnTooLarge as error:
        if length == 1:
            raise
        rows = -(-length // max(2 * error.needed_bytes // WORK_BYTES, 2))
    else:
        return hash_keys(columns, placing)
    clock, pieces = WorkClock(), []
    for lower in range(0, length, rows):
        clock.check()
        upper = min(lower + rows, length)
        pieces.append(_codes(keys, placing, _slices(column_of, lower, upper), upper - lower, timezone))
    return concat_codes(pieces)


def _slices(column_of: ColumnOf, lower: int, upper: int) -> ColumnOf:
    return lambda column: column_of(column).slice(lower, upper - lower)
