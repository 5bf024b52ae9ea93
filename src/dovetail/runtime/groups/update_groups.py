"""Groups without a window: of those that changed, the old row is taken back and the new one given.

What a group was before is the fold of its rows in the buckets from the reader's first batch on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.plan.group_plan import Detail, Fold, GroupPlan, GroupUser, PartialColumn
from dovetail.query.aggregation import AggregateFunction
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.groups.answer_groups import Answers, Distinct, differing
from dovetail.runtime.groups.count_distinct import distinct_counts, group_numbers, unseen
from dovetail.runtime.groups.limited_answers import GroupAnswers
from dovetail.runtime.groups.partial_groups import (
    PartialGroups,
    codes_of_rows,
    concat_groups,
    fold_groups,
    fold_partials,
)
from dovetail.runtime.groups.store import GroupStore

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def with_new_values(group: GroupPlan, new: Mapping[str, PartialGroups], task: BatchTask) -> dict[str, PartialGroups]:
    """What a batch brought, without the distinct values that were there before; the groups say how many are new."""
    found = dict(new)
    groups = new[group.id]
    columns = dict(groups.columns)
    for table in group.details:
        if table.detail is Detail.DISTINCT:
            rows = new[table.id]
            # All users began together.
            seen = GroupStore(task, table).find(codes_of_rows(table, rows), group.users[0].first_batch)
            found[table.id] = unseen(rows, seen)
            counts = distinct_counts(groups, table, found[table.id])
            columns[PartialColumn(Fold.NEW, table.arguments).name] = pa.array(counts)
    found[group.id] = replace(groups, columns=columns)
    return found


def update_groups(
    group: GroupPlan, new: Mapping[str, PartialGroups], task: BatchTask, answers: GroupAnswers, *, has_global: bool
) -> None:
    """`has_global`: the group of no key is this partition's."""
    for first_batch in sorted({user.first_batch for user in group.users}):
        groups = new[group.id]
        is_first = first_batch == task.batch
        if groups.rows == 0 and group.is_global and has_global and is_first:
            # The one group is there even without a row.
            columns = fold_partials(group.table.columns, groups.columns, np.zeros(0, np.int64), 1)
            groups = PartialGroups((), None, columns, 1)
        if groups.rows:
            changed = _changed(group, {**new, group.id: groups}, task, first_batch)
            if group.is_global and not is_first:
                changed.is_old[:] = True
            for user in group.users:
                if user.first_batch == first_batch:
                    with answers.charging(user):
                        _answer(user, changed, answers)


@dataclass(frozen=True)
class _Changed:
    """Groups that changed, before and after; `is_old` tells which were there before."""

    old: PartialGroups
    old_distinct: Distinct
    new: PartialGroups
    new_distinct: Distinct
    is_old: Mask


def _changed(group: GroupPlan, new: Mapping[str, PartialGroups], task: BatchTask, first_batch: int) -> _Changed:
    groups = new[group.id]
    codes = codes_of_rows(group.table, groups)
    found = GroupStore(task, group.table).find(codes, first_batch)
    numbers = group_numbers(groups, found, len(group.keys))
    # Another key may have the code of one of ours.
    idx = np.flatnonzero(numbers < groups.rows)
    found, numbers = found.take(idx), numbers[idx]
    before = _folded(group, groups, found, numbers)
    both = concat_groups([groups, found])
    after = _folded(group, groups, both, np.concatenate([np.arange(groups.rows), numbers]))
    old_distinct, new_distinct = _new_values(group, before), _new_values(group, after)
    for table in group.details:
        if table.detail is Detail.SKETCH:
            name = AggregateFunction.APPROX_COUNT_DISTINCT, table.arguments
            kept = GroupStore(task, table).find(codes, first_batch)
            old_distinct[name] = distinct_counts(groups, table, fold_groups(table, kept))
            whole = fold_groups(table, concat_groups([kept, new[table.id]]))
            new_distinct[name] = distinct_counts(groups, table, whole)
    return _Changed(before, old_distinct, after, new_distinct, np.bincount(numbers, minlength=groups.rows) > 0)


def _folded(group: GroupPlan, groups: PartialGroups, rows: PartialGroups, numbers: I64) -> PartialGroups:
    columns = fold_partials(group.table.columns, rows.columns, numbers, groups.rows)
    return PartialGroups(groups.keys, None, columns, groups.rows)


def _new_values(group: GroupPlan, groups: PartialGroups) -> dict[tuple[AggregateFunction, tuple[str, ...]], I64]:
    """Values that were new once are all that there are."""
    columns = [column for column in group.table.columns if column.fold is Fold.NEW and column.name in groups.columns]
    return {
        (AggregateFunction.COUNT_DISTINCT, column.arguments): np.asarray(groups.columns[column.name])
        for column in columns
    }


def _answer(user: GroupUser, changed: _Changed, answers: GroupAnswers) -> None:
    given = answers.of(user, changed.new, changed.new_distinct, None)
    old_idx = np.flatnonzero(changed.is_old)
    old_distinct = {name: counts[old_idx] for name, counts in changed.old_distinct.items()}
    taken = answers.of(user, changed.old.take(old_idx), old_distinct, None)
    if given is None or taken is None:
        return
    if user.is_updating:
        answers.write(user, _changes(Answers(taken.columns, old_idx[taken.idx]), given))
        return
    fresh = pa.array(np.flatnonzero(~changed.is_old[given.idx]))
    answers.write(user, [column.take(fresh) for column in given.columns])


def _changes(taken: Answers, given: Answers) -> list[pa.Array]:
    """Rows that are taken back, then rows that are given, each with its change; what stays the same is neither."""
    _, in_taken, in_given = np.intersect1d(taken.idx, given.idx, assume_unique=True, return_indices=True)
    is_same = ~differing(
        [column.take(pa.array(in_taken)) for column in taken.columns],
        [column.take(pa.array(in_given)) for column in given.columns],
    )
    back = pa.array(np.setdiff1d(np.arange(len(taken.idx)), in_taken[is_same]))
    forth = pa.array(np.setdiff1d(np.arange(len(given.idx)), in_given[is_same]))
    columns = [
        pa.concat_arrays([one.take(back), other.take(forth)])
        for one, other in zip(taken.columns, given.columns, strict=True)
    ]
    return [*columns, pa.array(np.repeat(np.array([-1, 1], np.int8), [len(back), len(forth)]))]
