"""What queries want of a store's new rows: all selections decided at once (A4), rows that nobody wants dropped."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.core.errors import charged
from dovetail.kernels.evaluate.work_limit import work_limit
from dovetail.kernels.select.select_all import AllSelections, select_all
from dovetail.kernels.select.select_rows import Mask, SelectionWords, any_of
from dovetail.plan.affected_queries import queries_of_index, queries_of_selection
from dovetail.plan.fill import filled_by
from dovetail.plan.store_plan import IndexPlan, StorePlan
from dovetail.query.expression import Column, Expression
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.report import STATISTICS, SelectionCount, TaskReport, sample_query_sets
from dovetail.runtime.source.guarded_key import GuardedKey
from dovetail.runtime.stopwatch import Stopwatch

Made = TypeVar("Made")
SHORT_S = 0.01
"""What a selection may take without anybody being asked whose it is."""


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
                for place, count in enumerate(decided.counts.tolist()):
                    if place not in decided.words.failed:
                        name = store.selection_names[place]
                        self._report.selections.append(SelectionCount(store.id, name, length, count))
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

        These are the rows that some query with this key wants: its selection may guard the key from failing. Where it
        fails on them, too, those queries fail on whose own rows it does. None if that is all of them, or if nobody is
        left who asks for it. A key that takes long is charged to all that use it.
        """
        plan, void, limits = self._task.plan, self._report.void_queries, self._task.limits
        if void and queries_of_index(plan, store.id, index) <= void:
            return None
        watch, longest_ms = Stopwatch(), limits.longest_ms
        if not all(isinstance(key, Column) for key in index.keys):
            longest_ms = self._report.left_ms(queries_of_index(plan, store.id, index), limits)
        try:
            with work_limit(longest_ms):
                return self._guarded(store, index, rows, make)
        finally:
            if (taken_s := watch.lap()) > SHORT_S:
                self._report.spend(queries_of_index(plan, store.id, index), taken_s, limits)

    def _guarded(
        self, store: StorePlan, index: IndexPlan, rows: StoreRows, make: Callable[[StoreRows], Made]
    ) -> tuple[Made, Mask | None] | None:
        try:
            return make(rows), None
        except Exception as error:  # noqa: BLE001 - whatever the key raises on these rows
            failure = charged(error)
        guarded = GuardedKey(
            self._task.plan,
            store.id,
            rows.length,
            lambda selections: self._passed_by(store, selections, rows),
            self._report,
            self._task.limits.longest_ms,
        )
        queries = queries_of_index(self._task.plan, store.id, index)
        return guarded.made(queries, failure, lambda wanted: make(rows.where(wanted)))

    def _passed_by(self, store: StorePlan, selections: Set[Expression], rows: StoreRows) -> Mask:
        places = [place for place, each in enumerate(store.tested_selections) if each in selections]
        return any_of([rows.selections.mask(place) for place in places], rows.length)

    def _decided(self, store: StorePlan, columns: dict[str, pa.Array], length: int, writers: set[str]) -> AllSelections:
        def on_failure(selection: Expression, error: Exception) -> None:
            self._report.fail(queries_of_selection(self._task.plan, store.id, selection) | writers, error)

        decided = select_all(
            store.tested_selections, lambda column: columns[column.name], length, self._task.timezone, on_failure
        )
        for place in np.flatnonzero(decided.seconds > SHORT_S).tolist():
            queries = queries_of_selection(self._task.plan, store.id, store.tested_selections[place])
            self._report.spend(queries, float(decided.seconds[place]), self._task.limits)
        return decided
