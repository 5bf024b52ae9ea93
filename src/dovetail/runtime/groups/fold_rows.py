"""Joined rows become partial groups: the first phase of an aggregation, in the task that found the rows.

Rows may stand for several: a weighted row counts as often as its weight says. And what of a row is already folded, such
as the exact sum of a partner's values, comes as a partial column in place of values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.core.errors import EvaluationError, charged
from dovetail.kernels.fold.exact_sum import fold_values
from dovetail.kernels.fold.fold_columns import count_rows, fold_counts, fold_extremes
from dovetail.kernels.fold.group_rows import codes_of_keys, key_column, plain_key
from dovetail.kernels.fold.hyperloglog import ranks_of, registers_of
from dovetail.plan.group_plan import (
    RANK,
    WINDOW_TIME,
    Detail,
    Fold,
    GroupPlan,
    GroupTable,
    Pane,
    PartialColumn,
)
from dovetail.runtime.groups.partial_groups import PartialGroups, fold_groups, fold_partials, grouping_of
from dovetail.runtime.stopwatch import Stopwatch
from dovetail.store.bucket_file import times_of

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
NULL_TIME = np.iinfo(np.int64).min

ValuesOf = Callable[[str], pa.Array]
"""The values of a column of joined rows; raises `EvaluationError` if one of them cannot be computed."""


@dataclass(frozen=True)
class JoinedRows:
    """`rows` joined rows of an aggregation, with a column for each of its keys, arguments and its window time.

    `weights[i]` says for how many rows row i stands, None: for one each. `folded` are partial columns that somebody
    folded already, by name: of row i what all the rows that it stands for add together (weights do not count again).
    """

    rows: int
    values_of: ValuesOf
    weights: I64 | None = None
    folded: Mapping[str, pa.Array] = field(default_factory=dict)


@dataclass(frozen=True)
class FoldedRows:
    """By table what the rows add; `failed` are the errors of partial columns and tables that could not be made.

    `seconds` is the work for each partial column and table alone, keys and groups aside.
    """

    rows_by_table: Mapping[str, PartialGroups]
    failed: Mapping[str, EvaluationError]
    seconds: Mapping[str, float]


def fold_rows(group: GroupPlan, rows: JoinedRows, unwanted: Collection[str] = ()) -> FoldedRows:
    """Raises `EvaluationError` if a key fails: then nobody can have groups. Else only who asks for it is concerned.

    Columns and tables that are `unwanted` are left out.
    """
    keys = [plain_key(rows.values_of(name)) for name, _ in group.keys]
    panes, kept = _panes_of(group.pane, rows)
    if kept is not None:
        keys = [key.take(pa.array(kept)) for key in keys]
        rows = _some_of(rows, kept)
    failed: dict[str, EvaluationError] = {}
    groups = grouping_of(keys, panes, rows.rows).groups
    firsts = pa.array(groups.first_rows)
    columns = {}
    seconds: dict[str, float] = {}
    watch = Stopwatch()
    for column in group.columns:
        if column.name in unwanted:
            continue
        try:
            columns[column.name] = _column(column, rows, groups.numbers, groups.count)
        except Exception as error:  # noqa: BLE001 - who asks for the column is charged
            failed[column.name] = charged(error)
        seconds[column.name] = watch.lap()
    first_panes = None if panes is None else panes[groups.first_rows]
    # Long texts are not copied for nothing.
    of_groups = tuple(key.take(firsts) for key in keys) if groups.count < rows.rows else tuple(keys)
    found = {group.id: PartialGroups(of_groups, first_panes, columns, groups.count)}
    for table in group.details:
        if table.id in unwanted:
            continue
        try:
            found[table.id] = _detail(table, keys, panes, rows)
        except Exception as error:  # noqa: BLE001 - who asks for the table is charged
            failed[table.id] = charged(error)
        seconds[table.id] = watch.lap()
    return FoldedRows(found, failed, seconds)


def _panes_of(pane: Pane | None, rows: JoinedRows) -> tuple[I64 | None, I64 | None]:
    """The pane of each row; if some have no time and belong to no window, those that have one, and which they are."""
    if pane is None:
        return None, None
    times = times_of(rows.values_of(WINDOW_TIME))
    kept = None
    if (times == NULL_TIME).any():
        kept = np.flatnonzero(times != NULL_TIME)
        times = times[kept]
    if not pane.is_start:
        times = times - (times - pane.offset_us) % pane.width_us
    return times, kept


def _some_of(rows: JoinedRows, kept: I64) -> JoinedRows:
    take = pa.array(kept)
    return JoinedRows(
        len(kept),
        lambda name: rows.values_of(name).take(take),
        None if rows.weights is None else rows.weights[kept],
        {name: column.take(take) for name, column in rows.folded.items()},
    )


def _column(column: PartialColumn, rows: JoinedRows, numbers: I64, count: int) -> pa.Array:
    if column.name in rows.folded:
        return fold_partials((column,), rows.folded, numbers, count)[column.name]
    if column.fold in (Fold.ROWS, Fold.COUNT):
        return pa.array(_counts(column, rows, numbers, count))
    values = rows.values_of(column.arguments[0])
    if column.fold is not Fold.SUM:
        return fold_extremes(values, numbers, count, largest=column.fold is Fold.MAX)
    return fold_values(values, numbers, count, rows.weights)


def _counts(column: PartialColumn, rows: JoinedRows, numbers: I64, count: int) -> I64:
    valid = _valid(rows, column.arguments)
    if valid is None:
        return count_rows(numbers, count) if rows.weights is None else fold_counts(rows.weights, numbers, count)
    return fold_counts(valid.astype(np.int64) if rows.weights is None else valid * rows.weights, numbers, count)


def _valid(rows: JoinedRows, arguments: tuple[str, ...]) -> Mask | None:
    """Where no argument is NULL; None for everywhere."""
    valid: Mask | None = None
    for argument in arguments:
        values = rows.values_of(argument)
        if values.null_count:
            own = np.asarray(values.is_valid())
            valid = own if valid is None else valid & own
    return valid


def _detail(table: GroupTable, keys: list[pa.Array], panes: I64 | None, rows: JoinedRows) -> PartialGroups:
    valid = _valid(rows, table.arguments)
    values = [plain_key(rows.values_of(argument)) for argument in table.arguments]
    if valid is not None:
        take = pa.array(np.flatnonzero(valid))
        keys, values = [key.take(take) for key in keys], [value.take(take) for value in values]
        panes = None if panes is None else panes[valid]
    length = len(values[0])
    columns = {}
    if table.detail is Detail.SKETCH:
        codes = codes_of_keys([key_column(values[0])], length)
        values, columns = [pa.array(registers_of(codes))], {RANK.name: pa.array(ranks_of(codes))}
    return fold_groups(table, PartialGroups((*keys, *values), panes, columns, length))
