"""Groups with a window: answered once, when the window closes, from the panes that it is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dovetail.kernels.match.hash_keys import CodeRange
from dovetail.plan.group_plan import COUNTED_BY_DETAIL, GroupPlan, GroupUser
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.groups.count_distinct import distinct_counts
from dovetail.runtime.groups.limited_answers import GroupAnswers
from dovetail.runtime.groups.partial_groups import PartialGroups, concat_groups, fold_groups
from dovetail.runtime.groups.store import GroupStore
from dovetail.runtime.groups.windows import in_closing_windows


def close_windows(
    group: GroupPlan,
    user: GroupUser,
    new: Mapping[str, PartialGroups],
    task: BatchTask,
    ranges: Sequence[CodeRange],
    closing: tuple[int, int],
    answers: GroupAnswers,
) -> None:
    """Answer the windows that end after the first time of `closing`, at the latest at the second."""
    pane, window = group.pane, user.window
    if pane is None or window is None:
        raise ValueError(f"{group.id} has no windows")
    found: dict[str, PartialGroups] = {}
    for table in group.tables:
        lower_us = closing[0] - window.size_us
        kept = GroupStore(task, table).in_panes(ranges, lower_us, closing[1], user.first_batch)
        rows = concat_groups([kept, new[table.id]])
        in_windows = in_closing_windows(rows, pane, window, closing, lambda pairs: answers.may_pair(user, pairs))
        if in_windows is None:
            return
        found[table.id] = fold_groups(table, in_windows)
    groups = found[group.id]
    distinct = {
        (COUNTED_BY_DETAIL[table.detail], table.arguments): distinct_counts(groups, table, found[table.id])
        for table in group.details
    }
    answered = answers.of(user, groups, distinct, pane)
    if answered is not None:
        answers.write(user, answered.columns)
