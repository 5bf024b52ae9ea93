"""The codes of keys, wherever a task needs them: what is stored, what probes, and what is sent on must agree."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from dovetail.kernels.evaluate.evaluate import evaluate
from dovetail.kernels.match.hash_keys import KeyCodes, hash_keys
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
    """Without keys every row has the code 0."""
    if not keys:
        return KeyCodes(np.zeros(length, np.uint64), None, is_exact=False)
    return hash_keys([evaluate(key, column_of, length, timezone=timezone) for key in keys], placing)
