"""Walked rows as an aggregation takes them: weighted by what they meet, with the folded side's values folded (D4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.kernels.evaluate.evaluate import evaluate
from dovetail.plan.group_plan import Fold, GroupPlan, PartialColumn
from dovetail.plan.probe_tree import Emit
from dovetail.runtime.factorized.walk import WalkedRows
from dovetail.runtime.groups.fold_rows import JoinedRows, ValuesOf
from dovetail.runtime.probe.frame import Frame, FrameValues, concat_frames
from dovetail.runtime.probe.snapshot import StoreSnapshot

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class WeighedRows:
    """Walked rows, for how many joined rows each stands, and the partial columns of what those add together."""

    frame: Frame
    weights: I64
    folded: Mapping[str, pa.Array]


def weigh_rows(
    emit: Emit, group: GroupPlan, found: WalkedRows, snapshots: Mapping[str, StoreSnapshot], timezone: str
) -> WeighedRows:
    values_of = _values_of(emit, found.frame, snapshots, timezone)
    folded = {
        column.name: _folded(column, found, values_of)
        for column in group.columns
        if any(name in found.arguments for name in column.arguments)
    }
    return WeighedRows(found.frame, found.weights, folded)


def joined_rows(
    emit: Emit, weighed: Sequence[WeighedRows], snapshots: Mapping[str, StoreSnapshot], timezone: str
) -> JoinedRows:
    """What the joined rows would say, one row for each walked one: of several buckets at once."""
    frame = concat_frames([each.frame for each in weighed])
    folded = {name: pa.concat_arrays([each.folded[name] for each in weighed]) for name in weighed[0].folded}
    weights = np.concatenate([each.weights for each in weighed])
    return JoinedRows(len(frame), _values_of(emit, frame, snapshots, timezone), weights, folded)


def _values_of(emit: Emit, frame: Frame, snapshots: Mapping[str, StoreSnapshot], timezone: str) -> ValuesOf:
    values = FrameValues(frame, snapshots)
    expressions = {column.name: column.expression for column in emit.output}
    known: dict[str, pa.Array] = {}

    def values_of(name: str) -> pa.Array:
        if name not in known:
            known[name] = evaluate(expressions[name], values.column, len(values), timezone=timezone)
        return known[name]

    return values_of


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
