"""What queries want of a store's new rows: all selections decided at once (A4), rows that nobody wants dropped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.core.errors import EvaluationError
from dovetail.kernels.select.select_all import AllSelections, select_all
from dovetail.kernels.select.select_rows import Mask, SelectionWords, any_of
from dovetail.plan.affected_queries import queries_of_index, queries_of_selection, selections_of_queries
from dovetail.plan.fill import filled_by
from dovetail.plan.store_plan import IndexPlan, StorePlan
from dovetail.query.expression import TRUE, Expression
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.report import STATISTICS, SelectionCount, TaskReport, sample_query_sets

Made = TypeVar("Made")


@dataclass(frozen=True)
class StoreRows:
    """Rows of a store, with what its tested selections say of them; `times` of None: without event time."""

    columns: dict[str, pa.Array]
    selections: SelectionWords
    times: npt.NDArray[np.int64] | None
    length: int

    def where(self, wanted: Mask) -> StoreRows:
        keep = pa.array(wanted)
        return StoreRows(
            {name: column.filter(keep) for name, column in self.columns.items()},
            self.selections.take(wanted),
            None if self.times is None else self.times[wanted],
            int(wanted.sum()),
        )

    def take(self, idx: npt.NDArray[np.int64]) -> StoreRows:
        taken = pa.array(idx)
        return StoreRows(
            {name: column.take(taken) for name, column in self.columns.items()},
            self.selections.take(idx),
            None if self.times is None else self.times[idx],
            len(idx),
        )


class RowSelector:
    """Decides for one task; what fails of a query's selections and keys goes to the report."""

    def __init__(self, task: BatchTask, report: TaskReport) -> None:
        self._task = task
        self._report = report

    def select(
        self,
        store: StorePlan,
        columns: dict[str, pa.Array],
        times: npt.NDArray[np.int64] | None,
        *,
        is_counted: bool = True,
    ) -> StoreRows:
        """The rows that somebody wants.

        `is_counted` is False for rows that are older than the batch: statistics speak of new ones.
        """
        length = len(next(iter(columns.values())))
        decided = self._decided(store, columns, length, set() if is_counted else {filled_by(store.id)})
        if is_counted:
            with self._report.timed(STATISTICS):
                self._report.selections += [
                    SelectionCount(store.id, store.selection_names[place], length, count)
                    for place, count in enumerate(decided.counts.tolist())
                    if place not in decided.words.failed
                ]
                self._report.query_sets += sample_query_sets(store, decided.words)
        rows = StoreRows(columns, decided.words, times, length)
        if not store.keeps_all:
            wanted = decided.words.any()
            if not wanted.all():
                rows = rows.where(wanted)
        return rows

    def guarded(
        self, store: StorePlan, index: IndexPlan, rows: StoreRows, make: Callable[[StoreRows], Made]
    ) -> tuple[Made, Mask | None] | None:
        """What is made of all rows by the key of an index or, where it fails, of those in the mask.

        These are the rows that some query with this key wants: its selection may guard the key from failing. None if
        it fails on them, too.
        """
        try:
            return make(rows), None
        except EvaluationError:
            wanted, queries = self._guard(store, index, rows)
        try:
            return make(rows.where(wanted)), wanted
        except EvaluationError as error:
            self._report.fail(queries, error)
            return None

    def _guard(self, store: StorePlan, index: IndexPlan, rows: StoreRows) -> tuple[Mask, set[str]]:
        queries = queries_of_index(self._task.plan, store.id, index)
        selections = selections_of_queries(self._task.plan, store.id, queries)
        places = [place for place, each in enumerate(store.tested_selections) if each in selections]
        guards = [rows.selections.mask(place) for place in places]
        return np.ones(rows.length, np.bool_) if TRUE in selections else any_of(guards, rows.length), queries

    def _decided(self, store: StorePlan, columns: dict[str, pa.Array], length: int, writers: set[str]) -> AllSelections:
        def on_failure(selection: Expression, error: EvaluationError) -> None:
            self._report.fail(queries_of_selection(self._task.plan, store.id, selection) | writers, error)

        return select_all(
            store.tested_selections, lambda column: columns[column.name], length, self._task.timezone, on_failure
        )
