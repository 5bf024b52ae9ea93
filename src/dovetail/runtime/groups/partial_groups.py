"""Rows of a group table, and how several of one group become one.

A row says what some rows added to a group: it is made from joined rows, folded with others of its group in the task,
sent to the partition of the group, folded again, kept in a bucket, folded when buckets merge and when the group is
answered. Every fold is exact, so neither their number nor their order shows in an answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.kernels.fold.exact_sum import fold_sums
from dovetail.kernels.fold.fold_columns import fold_counts, fold_extremes
from dovetail.kernels.fold.group_rows import KeyColumn, RowGroups, codes_of_keys, group_rows, key_column
from dovetail.kernels.match.hash_keys import combine_words
from dovetail.plan.group_plan import Detail, Fold, GroupTable, PartialColumn

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

PANE = "pane"
_UPPER_BITS = np.uint64(0xFFFF << 48)


@dataclass(frozen=True)
class PartialGroups:
    """`keys` as their table has them; `panes` are starts in microseconds, None without windows; `columns` by name."""

    keys: tuple[pa.Array, ...]
    panes: I64 | None
    columns: Mapping[str, pa.Array]
    rows: int

    @property
    def size_bytes(self) -> int:
        return sum(array.nbytes for array in (*self.keys, *self.columns.values()))

    def take(self, idx: I64) -> PartialGroups:
        take = pa.array(idx)
        return PartialGroups(
            tuple(key.take(take) for key in self.keys),
            None if self.panes is None else self.panes[idx],
            {name: column.take(take) for name, column in self.columns.items()},
            len(idx),
        )


def concat_groups(pieces: Sequence[PartialGroups]) -> PartialGroups:
    """Rows of one table, with the columns that all pieces have.

    A column is missing where it failed, or from before somebody asked for it: then nobody may ask for it here.
    """
    if len(pieces) == 1:
        return pieces[0]
    first = pieces[0]
    names = [name for name in first.columns if all(name in piece.columns for piece in pieces)]
    panes = [piece.panes for piece in pieces if piece.panes is not None]
    return PartialGroups(
        tuple(pa.concat_arrays([piece.keys[place] for piece in pieces]) for place in range(len(first.keys))),
        np.concatenate(panes) if first.panes is not None else None,
        {name: pa.concat_arrays([piece.columns[name] for piece in pieces]) for name in names},
        sum(piece.rows for piece in pieces),
    )


@dataclass(frozen=True)
class Grouping:
    """Which rows are of one group (and pane); `keys` are the key columns as grouping sees them."""

    keys: tuple[KeyColumn, ...]
    groups: RowGroups


def grouping_of(keys: Sequence[pa.Array], panes: I64 | None, rows: int) -> Grouping:
    """Equal keys and panes together; NULL is a key like any other."""
    columns = tuple(key_column(key) for key in keys)
    compared = _with_panes(columns, panes)
    return Grouping(columns, group_rows(codes_of_keys(compared, rows), compared))


def codes_of_groups_and_panes(rows: PartialGroups) -> U64:
    """Rows of one group and pane have the same."""
    return codes_of_keys(_with_panes(tuple(key_column(key) for key in rows.keys), rows.panes), rows.rows)


def _with_panes(columns: tuple[KeyColumn, ...], panes: I64 | None) -> tuple[KeyColumn, ...]:
    return columns if panes is None else (*columns, KeyColumn(panes.view(np.uint64), panes, True))


def fold_groups(table: GroupTable, rows: PartialGroups) -> PartialGroups:
    """One row for each group, in the order in which groups come."""
    groups = grouping_of(rows.keys, rows.panes, rows.rows).groups
    if groups.count == rows.rows:
        return rows
    firsts = pa.array(groups.first_rows)
    return PartialGroups(
        tuple(key.take(firsts) for key in rows.keys),
        None if rows.panes is None else rows.panes[groups.first_rows],
        fold_partials(table.columns, rows.columns, groups.numbers, groups.count),
        groups.count,
    )


def fold_partials(
    columns: Sequence[PartialColumn], partials: Mapping[str, pa.Array], numbers: I64, count: int
) -> dict[str, pa.Array]:
    """What is there of the partial columns, folded by group."""
    present = (column for column in columns if column.name in partials)
    return {column.name: _fold(column.fold, partials[column.name], numbers, count) for column in present}


def _fold(fold: Fold, partials: pa.Array, numbers: I64, count: int) -> pa.Array:
    if fold is Fold.SUM:
        return fold_sums(partials, numbers, count)
    if fold in (Fold.MIN, Fold.MAX):
        return fold_extremes(partials, numbers, count, largest=fold is Fold.MAX)
    return pa.array(fold_counts(np.asarray(partials), numbers, count))


def codes_of_rows(table: GroupTable, rows: PartialGroups) -> U64:
    """The code by which a row is placed and found: that of its group.

    Distinct values share only the upper bits of their group's code, by which it is placed: a group may have many, and
    one of them is looked up without the others.
    """
    columns = [key_column(key) for key in rows.keys]
    codes = codes_of_keys(columns[: table.group_keys], rows.rows)
    if table.detail is not Detail.DISTINCT:
        return codes
    values = combine_words([column.words for column in columns[table.group_keys :]])
    return (codes & _UPPER_BITS) | (values >> np.uint64(16))


def columns_of_rows(table: GroupTable, rows: PartialGroups) -> dict[str, pa.Array]:
    """As named columns, for files and messages."""
    columns = {name: key for (name, _), key in zip(table.keys, rows.keys, strict=True)}
    if rows.panes is not None:
        columns[PANE] = pa.array(rows.panes).view(pa.timestamp("us"))
    return columns | dict(rows.columns)


def rows_of_columns(table: GroupTable, columns: Mapping[str, pa.Array], rows: int) -> PartialGroups:
    """What `columns_of_rows` named; partial columns that are not there are left out."""
    panes = None
    if PANE in columns:
        panes = np.asarray(columns[PANE].view(pa.int64()))
    return PartialGroups(
        tuple(columns[name] for name, _ in table.keys),
        panes,
        {column.name: columns[column.name] for column in table.columns if column.name in columns},
        rows,
    )
