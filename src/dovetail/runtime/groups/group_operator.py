"""The last hop of a batch with aggregations: partial groups come together, become state and answers (B7, S8).

    running    of the groups that changed, the old row is taken back and the new one given
    windowed   what came is put by; once a window closes, its panes are gathered and it is answered, once

All joins of the batch are done, so windows close by the watermarks after its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from dovetail.kernels.match.hash_keys import codes_of_groups
from dovetail.plan.group_plan import GroupPlan, GroupTable
from dovetail.runtime.answer_files import AnswerFiles
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.bucket_files import BucketFiles
from dovetail.runtime.groups.close_windows import close_windows
from dovetail.runtime.groups.folder import receive_groups
from dovetail.runtime.groups.limited_answers import GroupAnswers
from dovetail.runtime.groups.partial_groups import PartialGroups, concat_groups, fold_groups
from dovetail.runtime.groups.store import GroupStore, write_groups
from dovetail.runtime.groups.update_groups import update_groups, with_new_values
from dovetail.runtime.groups.windows import BEGINNING
from dovetail.runtime.report import GroupCount, TaskReport
from dovetail.runtime.watermarks import watermarks_after
from dovetail.store.bucket_file import BucketMeta


class GroupStage:
    """All aggregations of one partition; what it keeps is `written`, answers go to `files`."""

    def __init__(
        self,
        task: BatchTask,
        partition: int,
        first_split: int,
        report: TaskReport,
        files: AnswerFiles,
        buckets: BucketFiles,
    ) -> None:
        self._task = task
        self._report = report
        self._buckets = buckets
        self._answers = GroupAnswers(task, report, files)
        self._next_split = first_split
        placement = task.plan.placement
        self._ranges = [
            codes_of_groups(lower, upper, placement.group_count) for lower, upper in placement.group_ranges(partition)
        ]
        # No key has the code 0.
        self._has_global = placement.partition_by_group[0] == partition
        self._closed_us = dict(task.closed_us)
        self.written: list[BucketMeta] = []

    def run(self, payloads: list[bytes], times: Iterable[bytes]) -> None:
        received = receive_groups(self._task.plan.groups, payloads)
        watermarks = watermarks_after(self._task, times)
        for group in self._task.plan.groups:
            users = {user.query for user in group.users}
            with self._report.charging(users), self._report.working_for(users, self._task.limits):
                self._run_group(group, received, watermarks)

    def _run_group(
        self, group: GroupPlan, received: Mapping[str, list[PartialGroups]], watermarks: Mapping[str, int]
    ) -> None:
        new = {table.id: self._folded(table, received.get(table.id, [])) for table in group.tables}
        if group.pane is None:
            new = with_new_values(group, new, self._task)
            update_groups(group, new, self._task, self._answers, has_global=self._has_global)
            self._put_by(group, new)
        else:
            self._close(group, new, group.pane.closed_until(watermarks))

    def _folded(self, table: GroupTable, pieces: list[PartialGroups]) -> PartialGroups:
        return fold_groups(table, concat_groups(pieces)) if pieces else GroupStore(self._task, table).empty()

    def _close(self, group: GroupPlan, new: dict[str, PartialGroups], until_us: int | None) -> None:
        after_us = self._closed_us.get(group.id, BEGINNING)
        if until_us is not None and until_us > after_us:
            for user in group.users:
                with self._answers.charging(user):
                    close_windows(group, user, new, self._task, self._ranges, (after_us, until_us), self._answers)
        open_from = group.open_from(until_us)
        if open_from is not None:
            new = {
                name: rows.take(np.flatnonzero(rows.panes >= open_from)) if rows.panes is not None else rows
                for name, rows in new.items()
            }
        self._put_by(group, new)

    def _put_by(self, group: GroupPlan, new: dict[str, PartialGroups]) -> None:
        for table in group.tables:
            rows = new[table.id]
            if rows.rows:
                self.written.append(write_groups(self._buckets, table, rows, self._next_split))
                self._next_split += 1
                self._report.groups.append(GroupCount(table.id, kept_rows=rows.rows))
