"""What queries want of a store's new rows: all selections decided at once (A4), rows that nobody wants dropped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.core.errors import EvaluationError
from dovetail.kernels.evaluate import evaluate_mask
from dovetail.kernels.select_rows import Mask, any_of
from dovetail.plan.affected_queries import queries_of_index, queries_of_selection, selections_of_queries
from dovetail.plan.fill import filled_by
from dovetail.plan.store_plan import IndexPlan, StorePlan
from dovetail.query.expression import TRUE
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.report import STATISTICS, SelectionCount, TaskReport, sample_query_sets

Made = TypeVar("Made")


@dataclass(frozen=True)
class StoreRows:
    """Rows of a store, with what each selection says of them; `times` of None: without event time."""

    columns: dict[str, pa.Array]
    masks: dict[str, Mask]
    times: npt.NDArray[np.int64] | None
    length: int

    def where(self, wanted: Mask) -> StoreRows:
        keep = pa.array(wanted)
        return StoreRows(
            {name: column.filter(keep) for name, column in self.columns.items()},
            {name: mask[wanted] for name, mask in self.masks.items()},
            None if self.times is None else self.times[wanted],
            int(wanted.sum()),
        )

    def take(self, idx: npt.NDArray[np.int64]) -> StoreRows:
        taken = pa.array(idx)
        return StoreRows(
            {name: column.take(taken) for name, column in self.columns.items()},
            {name: mask[idx] for name, mask in self.masks.items()},
            None if self.times is None else self.times[idx],
            len(idx),
        )


class RowDecider:
    """Decides for one task; what fails of a query's selections and keys goes to the report."""

    def __init__(self, task: BatchTask, report: TaskReport) -> None:
        self._task = task
        self._report = report

    def decide(
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
        masks = self._selection_masks(store, columns, length, set() if is_counted else {filled_by(store.id)})
        if is_counted:
            with self._report.timed(STATISTICS):
                self._report.selections += [
                    SelectionCount(store.id, selection, length, int(np.count_nonzero(mask)))
                    for selection, mask in masks.items()
                ]
                self._report.query_sets += sample_query_sets(store, masks, length)
        rows = StoreRows(columns, masks, times, length)
        if not store.keeps_all:
            wanted = any_of(list(masks.values()), length)
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
        guards = [rows.masks[str(selection)] for selection in selections if str(selection) in rows.masks]
        return np.ones(rows.length, np.bool_) if TRUE in selections else any_of(guards, rows.length), queries

    def _selection_masks(
        self, store: StorePlan, columns: dict[str, pa.Array], length: int, writers: set[str]
    ) -> dict[str, Mask]:
        """By selection; one that fails is left out, so that nobody takes its rows for refused ones later."""
        masks = {}
        for selection in store.tested_selections:
            try:
                masks[str(selection)] = evaluate_mask(
                    selection, lambda column: columns[column.name], length, timezone=self._task.timezone
                )
            except EvaluationError as error:
                self._report.fail(queries_of_selection(self._task.plan, store.id, selection) | writers, error)
        return masks
