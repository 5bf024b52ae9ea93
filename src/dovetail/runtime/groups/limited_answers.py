"""Answers of groups on their way to files: counted against their query's limits, or not at all if it failed."""

from __future__ import annotations

from contextlib import AbstractContextManager

import pyarrow as pa

from dovetail.plan.group_plan import GroupUser, Pane
from dovetail.plan.query_limits import Found
from dovetail.query.answer_columns import CHANGE
from dovetail.query.output_names import unique_names
from dovetail.runtime.answer_files import AnswerFiles
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.groups.answer_groups import Answers, Distinct, answer_groups, is_answerable
from dovetail.runtime.groups.partial_groups import PartialGroups
from dovetail.runtime.report import TaskReport


class GroupAnswers:
    def __init__(self, task: BatchTask, report: TaskReport, files: AnswerFiles) -> None:
        self._task = task
        self._report = report
        self._files = files

    def of(self, user: GroupUser, groups: PartialGroups, distinct: Distinct, pane: Pane | None) -> Answers | None:
        """None if the query failed, here or where its partial groups were made."""
        if not is_answerable(user, groups) or user.query in self._report.void_queries:
            return None
        try:
            return answer_groups(user, groups, distinct, pane, self._task.timezone)
        except Exception as error:  # noqa: BLE001 - whatever these answers raise on these groups
            self._report.fail({user.query}, error)
            return None

    def may_pair(self, user: GroupUser, pairs: int) -> bool:
        """Whether so many groups and windows that they are part of are within its limit: False stops the query."""
        return self._report.count(user.query, Found(pairs=pairs), self._task.limits)

    def write(self, user: GroupUser, columns: list[pa.Array]) -> None:
        rows, size = len(columns[0]), sum(column.nbytes for column in columns)
        if rows and self._report.count(user.query, Found(results=rows, result_bytes=size), self._task.limits):
            names = [column.name for column in user.output] + ([CHANGE] if user.is_updating else [])
            self._files.write(user.query, [pa.RecordBatch.from_arrays(columns, unique_names(names))], size)

    def charging(self, user: GroupUser) -> AbstractContextManager[None]:
        """Whatever goes wrong inside is this user's failure."""
        return self._report.charging({user.query})
