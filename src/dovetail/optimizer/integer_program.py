"""Integer programs: built column by column and row by row, solved within a budget, read back.

The only place that talks to HiGHS. Whoever has a program knows what its columns mean; here they are numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import highspy
import numpy as np

FEASIBLE = 2
"""HiGHS's status of a solution that keeps all rows."""
Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]
Terms = tuple[Ints, Ints, Floats | float]
"""Row from 0 on, column, value: of the rows that are added together."""


@dataclass(frozen=True)
class SolveBudget:
    """`gap`: a solution that is proven to cost at most so much more than any other is good enough.

    `max_nodes`: only to find something better soon, by the same way each time.
    """

    seconds: float
    gap: float
    max_nodes: int | None = None


@dataclass(frozen=True)
class ProgramAnswer:
    """`values` of None: nothing was found in time. `bound`: no solution costs less; -inf where nothing is proven."""

    values: list[float] | None
    bound: float
    is_optimal: bool


@dataclass
class IntegerProgram:
    """Minimizes what its columns cost. Rows and columns are in the order in which they were added."""

    costs: list[float] = field(default_factory=list)
    _column_lower: list[float] = field(default_factory=list)
    _column_upper: list[float] = field(default_factory=list)
    _is_integer: list[bool] = field(default_factory=list)
    _row_lower: list[float] = field(default_factory=list)
    _row_upper: list[float] = field(default_factory=list)
    _rows: list[int] = field(default_factory=list)
    _columns: list[int] = field(default_factory=list)
    _values: list[float] = field(default_factory=list)

    def add_column(self, cost: float, *, is_integer: bool) -> int:
        """Between 0 and 1; returns its number."""
        self.costs.append(cost)
        self._column_lower.append(0.0)
        self._column_upper.append(1.0)
        self._is_integer.append(is_integer)
        return len(self.costs) - 1

    def add_columns(self, costs: Floats, lower: Floats, upper: Floats, *, is_integer: bool) -> None:
        self.costs += costs.tolist()
        self._column_lower += lower.tolist()
        self._column_upper += upper.tolist()
        self._is_integer += [is_integer] * len(costs)

    def add_row(self, lower: float, upper: float, terms: Iterable[tuple[int, float]]) -> None:
        """Terms are (column, value)."""
        row = len(self._row_lower)
        for column, value in terms:
            self._rows.append(row)
            self._columns.append(column)
            self._values.append(value)
        self._row_lower.append(lower)
        self._row_upper.append(upper)

    def add_rows(self, count: int, lower: float, upper: float, *terms: Terms) -> None:
        first = len(self._row_lower)
        for rows, columns, values in terms:
            self._rows += (rows.ravel() + first).tolist()
            self._columns += columns.ravel().tolist()
            self._values += np.broadcast_to(values, rows.shape).ravel().tolist()
        self._row_lower += [lower] * count
        self._row_upper += [upper] * count

    def total(self, values: Sequence[float]) -> float:
        return float(np.dot(self.costs, values))

    def solve(
        self, start: Sequence[float], budget: SolveBudget, on_improvement: Callable[[float], None] | None = None
    ) -> ProgramAnswer:
        """From a solution that is known, until good enough or out of time; the same answer if time is left."""
        solver = highspy.Highs()  # type: ignore[no-untyped-call]
        for option, value in _options(budget):
            solver.setOptionValue(option, value)
        solver.passModel(self._as_lp())
        solution = highspy.HighsSolution()
        solution.col_value = list(start)
        solver.setSolution(solution)
        if on_improvement is not None:
            solver.cbMipImprovingSolution.subscribe(
                lambda event: on_improvement(event.data_out.objective_function_value)
            )
        solver.run()
        info = solver.getInfo()
        # HiGHS may be stopped before it has looked at the start, and then has no solution or an unfinished one.
        is_found = info.primal_solution_status == FEASIBLE
        return ProgramAnswer(
            list(solver.getSolution().col_value) if is_found else None,
            info.mip_dual_bound if math.isfinite(info.mip_dual_bound) else -math.inf,
            solver.getModelStatus() == highspy.HighsModelStatus.kOptimal,
        )

    def _as_lp(self) -> highspy.HighsLp:
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.costs), len(self._row_lower)
        lp.col_cost_ = np.array(self.costs)
        lp.col_lower_, lp.col_upper_ = np.array(self._column_lower), np.array(self._column_upper)
        lp.row_lower_, lp.row_upper_ = np.array(self._row_lower), np.array(self._row_upper)
        rows = np.array(self._rows, dtype=np.int64)
        by_row = np.argsort(rows, kind="stable")
        starts = np.zeros(lp.num_row_ + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows, minlength=lp.num_row_), out=starts[1:])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = starts.astype(np.int32)
        lp.a_matrix_.index_ = np.array(self._columns, dtype=np.int32)[by_row]
        lp.a_matrix_.value_ = np.array(self._values)[by_row]
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[is_integer] for is_integer in self._is_integer]
        return lp


def _options(budget: SolveBudget) -> list[tuple[str, Any]]:
    options: list[tuple[str, Any]] = [
        ("output_flag", False),
        ("time_limit", max(budget.seconds, 0.0)),
        ("mip_rel_gap", budget.gap),
        ("parallel", "off"),
        # Threads are the process's: HiGHS refuses to run with another number of them than the first time.
        ("threads", 1),
    ]
    if budget.max_nodes is not None:
        options += [
            ("mip_max_nodes", budget.max_nodes),
            ("mip_detect_symmetry", False),
            ("mip_allow_restart", False),
        ]
    return options
