"""Walked rows as an aggregation takes them: weighted by what they meet, with the folded side's values folded (D4)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.kernels.evaluate.evaluate import evaluate
from dovetail.plan.group_plan import Fold, GroupPlan, PartialColumn
from dovetail.plan.probe_tree import Emit
from dovetail.runtime.factorized.walk import WalkedRows
from dovetail.runtime.groups.fold_rows import JoinedRows, ValuesOf
from dovetail.runtime.probe.frame import FrameValues
from dovetail.runtime.probe.snapshot import StoreSnapshot

I64 = npt.NDArray[np.int64]


def weigh_rows(
    emit: Emit, group: GroupPlan, found: WalkedRows, snapshots: Mapping[str, StoreSnapshot], timezone: str
) -> JoinedRows:
    """What the joined rows of `found` would say, one row for each walked one."""
    values = FrameValues(found.frame, snapshots)
    expressions = {column.name: column.expression for column in emit.output}
    known: dict[str, pa.Array] = {}

    def values_of(name: str) -> pa.Array:
        if name not in known:
            known[name] = evaluate(expressions[name], values.column, len(values), timezone=timezone)
        return known[name]

    folded = {
        column.name: _folded(column, found, values_of)
        for column in group.columns
        if any(name in found.arguments for name in column.arguments)
    }
    return JoinedRows(len(found), values_of, found.weights, folded)


def _folded(column: PartialColumn, found: WalkedRows, values_of: ValuesOf) -> pa.Array:
    """A partial column with arguments of the folded side."""
    if column.fold is Fold.COUNT:
        return pa.array(_counts(column.arguments, found, values_of))
    (argument,) = column.arguments
    if column.fold is Fold.SUM:
        return found.sums(argument)
    return found.extremes(argument, is_max=column.fold is Fold.MAX)


def _counts(arguments: tuple[str, ...], found: WalkedRows, values_of: ValuesOf) -> I64:
    """Rows in which all arguments are there, of either side."""
    counts = found.counts(name for name in arguments if name in found.arguments)
    for name in arguments:
        if name not in found.arguments:
            counts = counts * np.asarray(values_of(name).is_valid())
    return counts
