"""A key that fails on some rows is asked of those rows alone that its users want: their selections may guard it.

Where it fails on them, too, those users fail on whose own rows it does. A user is nobody else's guard.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from dovetail.core.errors import charged
from dovetail.plan.affected_queries import queries_of_selection, selections_of_queries
from dovetail.plan.shared_plan import SharedPlan
from dovetail.query.expression import TRUE, Expression
from dovetail.runtime.report import TaskReport
from dovetail.runtime.stopwatch import Stopwatch

Made = TypeVar("Made")
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class GuardedKey:
    """Of `rows` rows of a store, `passed_by` tells which pass some of these selections, none of them TRUE."""

    plan: SharedPlan
    store: str
    rows: int
    passed_by: Callable[[Set[Expression]], Mask]
    report: TaskReport
    longest_ms: float | None

    def made(self, queries: Set[str], failure: Exception, make: Callable[[Mask], Made]) -> tuple[Made, Mask] | None:
        """What is made of the rows in the mask, which some of the queries want; `failure` is that of all rows.

        None if the key fails for all of them.
        """
        left = set(queries)
        while left:
            wanted = self.wanted_by(selections_of_queries(self.plan, self.store, left))
            try:
                if wanted.all():
                    raise failure  # As it did: it is not tried again, which may take long.
                return make(wanted), wanted
            except Exception as error:  # noqa: BLE001 - whatever the key raises on these rows
                charged(error)
                guilty = self._guilty(left, make) or left
                self.report.fail(guilty, error)
                left -= guilty
        return None

    def wanted_by(self, selections: Set[Expression]) -> Mask:
        return np.ones(self.rows, np.bool_) if TRUE in selections else self.passed_by(selections)

    def _guilty(self, queries: set[str], make: Callable[[Mask], object]) -> set[str]:
        """The queries of selections that pass rows on which it fails.

        Those that pass the fewest are tried first. Once that has taken as long as a query may, the others are not:
        with many selections, finding out who makes everybody wait would make them wait much longer.
        """
        masks = {
            selection: self.wanted_by({selection})
            for selection in selections_of_queries(self.plan, self.store, queries)
        }
        if len(masks) == 1:
            return queries
        guilty: set[str] = set()
        watch = Stopwatch()
        for selection, mask in sorted(masks.items(), key=lambda each: (int(each[1].sum()), str(each[0]))):
            try:
                if self.longest_ms is None or watch.running_s * 1e3 < self.longest_ms:
                    make(mask)
                    continue
            except Exception as error:  # noqa: BLE001 - as above
                charged(error)
            guilty |= queries & queries_of_selection(self.plan, self.store, selection)
        return guilty
