"""Finished groups become answers: aggregates from partial columns, then HAVING, then the output (Spark's rules)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.evaluate.evaluate import evaluate, evaluate_mask
from dovetail.kernels.fold.read_sums import averages_of, bigints_of, decimals_of, doubles_of
from dovetail.plan.group_plan import FOLDS, ROWS, Fold, GroupUser, Pane, PartialColumn
from dovetail.query.aggregation import Aggregate, AggregateFunction, aggregate_column, key_column
from dovetail.query.expression import TRUE, Column
from dovetail.query.join_query import WINDOW_END, WINDOW_START
from dovetail.runtime.groups.partial_groups import PartialGroups

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Distinct = Mapping[tuple[AggregateFunction, tuple[str, ...]], I64]
"""By function and arguments, how many distinct values each group has."""
_FOLD_ITSELF = {
    AggregateFunction.COUNT: Fold.COUNT,
    AggregateFunction.MIN: Fold.MIN,
    AggregateFunction.MAX: Fold.MAX,
}
_DISTINCT = (AggregateFunction.COUNT_DISTINCT, AggregateFunction.APPROX_COUNT_DISTINCT)


@dataclass(frozen=True)
class Answers:
    """`columns` are the output; `idx` says of which groups."""

    columns: list[pa.Array]
    idx: I64


def is_answerable(user: GroupUser, groups: PartialGroups) -> bool:
    """Whether all that the user asks for is there; what is not failed in the task that should have made it."""
    return all(_columns(aggregate) <= groups.columns.keys() for aggregate in user.aggregates)


def _columns(aggregate: Aggregate) -> set[str]:
    names = _names(aggregate)
    if aggregate.function in _DISTINCT:
        return set()
    if not names:
        return {ROWS.name}
    return {PartialColumn(fold, names).name for fold in FOLDS[aggregate.function]}


def answer_groups(
    user: GroupUser, groups: PartialGroups, distinct: Distinct, pane: Pane | None, timezone: str
) -> Answers:
    """Raises `EvaluationError` where Spark would: a sum that its type cannot hold, or what an expression says."""
    values = {key_column(place): key for place, key in enumerate(groups.keys)}
    if groups.panes is not None and pane is not None and user.window is not None:
        kind = arrow_type(pane.time_type, timezone)
        values[WINDOW_START] = pa.array(groups.panes).view(kind)
        values[WINDOW_END] = pa.array(groups.panes + user.window.size_us).view(kind)
    for place, aggregate in enumerate(user.aggregates):
        values[aggregate_column(place)] = _value(aggregate, groups, distinct).cast(arrow_type(aggregate.type, timezone))
    idx = np.arange(groups.rows)
    if user.having != TRUE:
        idx = np.flatnonzero(
            evaluate_mask(user.having, lambda column: values[column.name], groups.rows, timezone=timezone)
        )
        take = pa.array(idx)
        values = {name: value.take(take) for name, value in values.items()}

    def column_of(column: Column) -> pa.Array:
        return values[column.name]

    return Answers([evaluate(column.expression, column_of, len(idx), timezone=timezone) for column in user.output], idx)


def differing(old: list[pa.Array], new: list[pa.Array]) -> Mask:
    """Where rows differ in some column; NULL equals NULL, NaN equals NaN."""
    differ: Mask = np.zeros(len(old[0]), np.bool_)
    for one, other in zip(old, new, strict=True):
        if pa.types.is_struct(one.type):
            differ |= differing(one.flatten(), other.flatten())
            continue
        same = pc.fill_null(pc.equal(one, other), False)
        both_null = pc.and_(one.is_null(), other.is_null())
        equal = np.asarray(pc.or_(same, both_null))
        if pa.types.is_floating(one.type):
            equal |= np.asarray(pc.fill_null(pc.and_(pc.is_nan(one), pc.is_nan(other)), False))
        differ |= ~equal
    return differ


def _value(aggregate: Aggregate, groups: PartialGroups, distinct: Distinct) -> pa.Array:
    names, function = _names(aggregate), aggregate.function
    if function in _DISTINCT:
        return pa.array(distinct[function, names])
    if not names:
        return groups.columns[ROWS.name]
    if function in _FOLD_ITSELF:
        return groups.columns[PartialColumn(_FOLD_ITSELF[function], names).name]
    return _of_sum(aggregate, groups, names)


def _of_sum(aggregate: Aggregate, groups: PartialGroups, names: tuple[str, ...]) -> pa.Array:
    """SUM and AVG: NULL where there was no value."""
    counts = np.asarray(groups.columns[PartialColumn(Fold.COUNT, names).name])
    sums = groups.columns[PartialColumn(Fold.SUM, names).name]
    argument_type = aggregate.arguments[0].type
    null_mask = counts == 0
    if aggregate.function is AggregateFunction.SUM:
        if argument_type.is_integer:
            return bigints_of(sums, null_mask)
        if argument_type.name == "decimal":
            return decimals_of(sums, aggregate.type, null_mask)
        return pa.array(doubles_of(sums), mask=null_mask)
    if argument_type.name == "decimal":
        return averages_of(sums, counts, aggregate.type, argument_type.scale, null_mask)
    return pa.array(doubles_of(sums) / np.where(null_mask, 1, counts), mask=null_mask)


def _names(aggregate: Aggregate) -> tuple[str, ...]:
    return tuple(argument.name for argument in aggregate.arguments if isinstance(argument, Column))
