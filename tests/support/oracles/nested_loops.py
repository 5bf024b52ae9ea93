"""Joins by brute force: every combination of rows, each condition tried on all of them.

Slow on purpose. No hashing, no order, no index: nothing that the engine's kernels could get wrong in
the same way, except the evaluation of expressions itself (DuckDB checks that one).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.kernels.evaluate.evaluate import evaluate, evaluate_mask
from dovetail.query.aggregation import GroupWindow
from dovetail.query.expression import Call, Expression, relations_of
from dovetail.query.join_query import WINDOW_END, WINDOW_START, HopWindow, JoinQuery, Relation
from dovetail.query.types import BOOLEAN

EVENT_TIME = "event time"
"""Name of the extra column that holds a relation's event time in microseconds."""

Columns = dict[tuple[str, str], pa.Array]
"""Columns of a growing result by (alias, column)."""


def join_by_nested_loops(
    query: JoinQuery, tables: Mapping[str, pa.Table], event_times: Mapping[str, str | None]
) -> pa.Table:
    """All joined rows of `query` over `tables` (by stream), as a table with its output columns."""
    columns, row_count = joined_rows(query, tables, event_times)
    outputs = [evaluated(column.expression, columns, row_count) for column in query.output]
    return pa.Table.from_arrays(outputs, names=[column.name for column in query.output])


def joined_rows(
    query: JoinQuery, tables: Mapping[str, pa.Table], event_times: Mapping[str, str | None]
) -> tuple[Columns, int]:
    """The columns of all members of all joined rows, and how many rows they are."""
    columns: Columns = {}
    row_count = 1
    for relation in query.relations:
        added, added_count = relation_rows(relation, tables[relation.stream], event_times[relation.stream])
        columns, row_count = cross(columns, row_count, added, added_count)
        known = {alias for alias, _ in columns}
        mask = np.ones(row_count, dtype=bool)
        for condition in conditions_on(query, relation.alias, known):
            mask &= is_true(condition, columns, row_count)
        for bound in query.time_bounds:
            if relation.alias in (bound.earlier, bound.later) and {bound.earlier, bound.later} <= known:
                mask &= is_within(columns, bound.earlier, bound.later, bound.upper_us)
        columns, row_count = filtered(columns, mask)
    return columns, row_count


def relation_rows(relation: Relation, table: pa.Table, event_time: str | None) -> tuple[Columns, int]:
    columns: Columns = {(relation.alias, name): table.column(name).combine_chunks() for name in table.column_names}
    if event_time is not None:
        columns[relation.alias, EVENT_TIME] = columns[relation.alias, event_time].cast(pa.int64())
    row_count = table.num_rows
    if relation.hop_window is not None:
        columns, row_count = _with_windows(relation.alias, columns, relation.hop_window)
    return filtered(columns, is_true(relation.selection, columns, row_count))


def _with_windows(alias: str, columns: Columns, window: HopWindow) -> tuple[Columns, int]:
    """One row per row and window that holds its time; none where the time is NULL."""
    times = columns[alias, window.time_column]
    row_idx, starts = window_starts(times, window)
    taken = {key: array.take(pa.array(row_idx, pa.int64())) for key, array in columns.items()}
    ends = [start + window.size_us for start in starts]
    taken[alias, WINDOW_START] = pa.array(starts, pa.int64()).cast(times.type)
    taken[alias, WINDOW_END] = pa.array(ends, pa.int64()).cast(times.type)
    return taken, len(row_idx)


def window_starts(times: pa.Array, window: HopWindow | GroupWindow) -> tuple[list[int], list[int]]:
    """Each row and each window that holds its time: positions of rows, and starts in microseconds."""
    row_idx: list[int] = []
    starts: list[int] = []
    for position, time in enumerate(times.cast(pa.int64()).to_pylist()):
        if time is None:
            continue
        start = (time - window.offset_us) // window.slide_us * window.slide_us + window.offset_us
        while start + window.size_us > time:
            row_idx.append(position)
            starts.append(start)
            start -= window.slide_us
    return row_idx, starts


def cross(columns: Columns, row_count: int, added: Columns, added_count: int) -> tuple[Columns, int]:
    outer_idx = pa.array(np.repeat(np.arange(row_count), added_count))
    inner_idx = pa.array(np.tile(np.arange(added_count), row_count))
    crossed = {key: array.take(outer_idx) for key, array in columns.items()}
    crossed |= {key: array.take(inner_idx) for key, array in added.items()}
    return crossed, row_count * added_count


def conditions_on(query: JoinQuery, alias: str, known: set[str]) -> list[Expression]:
    """What can be tried once `alias` has joined and could not before."""
    equalities = [Call("eq", (e.a_side, e.b_side), BOOLEAN) for e in query.equalities]
    found = []
    for condition in (*equalities, *query.residuals):
        speaks_of = relations_of(condition) or {query.relations[0].alias}
        if alias in speaks_of and speaks_of <= known:
            found.append(condition)
    return found


def is_within(columns: Columns, earlier: str, later: str, upper_us: int) -> np.ndarray:
    distance = pc.subtract(columns[later, EVENT_TIME], columns[earlier, EVENT_TIME])
    return _as_mask(pc.less_equal(distance, upper_us))


def is_true(condition: Expression, columns: Columns, row_count: int) -> np.ndarray:
    return evaluate_mask(condition, lambda column: columns[column.relation, column.name], row_count)


def _as_mask(array: pa.Array) -> np.ndarray:
    return np.asarray(array.fill_null(False).to_numpy(zero_copy_only=False), dtype=bool)


def filtered(columns: Columns, mask: np.ndarray) -> tuple[Columns, int]:
    return {key: array.filter(pa.array(mask)) for key, array in columns.items()}, int(mask.sum())


def evaluated(expression: Expression, columns: Columns, row_count: int) -> pa.Array:
    return evaluate(expression, lambda column: columns[column.relation, column.name], row_count)
