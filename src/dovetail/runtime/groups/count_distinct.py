"""Distinct values of groups: which are new, and how many there are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.kernels.fold.fold_columns import count_rows
from dovetail.kernels.fold.hyperloglog import estimate_distinct
from dovetail.plan.group_plan import RANK, Detail, GroupTable
from dovetail.runtime.groups.partial_groups import PartialGroups, grouping_of

I64 = npt.NDArray[np.int64]


def unseen(rows: PartialGroups, found: PartialGroups) -> PartialGroups:
    """The rows, all different, that are not among those found."""
    keys = [pa.concat_arrays([one, other]) for one, other in zip(rows.keys, found.keys, strict=True)]
    numbers = grouping_of(keys, None, rows.rows + found.rows).groups.numbers
    is_seen = np.zeros(rows.rows, np.bool_)
    seen = numbers[rows.rows :]
    is_seen[seen[seen < rows.rows]] = True
    return rows.take(np.flatnonzero(~is_seen)) if is_seen.any() else rows


def distinct_counts(groups: PartialGroups, table: GroupTable, details: PartialGroups) -> I64:
    """How many values each group has, by rows of its detail table that are all different."""
    numbers = group_numbers(groups, details, table.group_keys)
    is_known = numbers < groups.rows
    numbers = numbers[is_known]
    if table.detail is Detail.DISTINCT:
        return count_rows(numbers, groups.rows)
    return estimate_distinct(np.asarray(details.columns[RANK.name])[is_known], numbers, groups.rows)


def group_numbers(groups: PartialGroups, rows: PartialGroups, group_keys: int) -> I64:
    """Of each row the place of its group among `groups`, which are all different; beyond them if it is not there."""
    keys = [pa.concat_arrays([groups.keys[place], rows.keys[place]]) for place in range(group_keys)]
    panes = None
    if groups.panes is not None and rows.panes is not None:
        panes = np.concatenate([groups.panes, rows.panes])
    return grouping_of(keys, panes, groups.rows + rows.rows).groups.numbers[groups.rows :]
