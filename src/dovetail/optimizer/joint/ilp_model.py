"""The integer program (CLASH section V) over arcs instead of orders, and the only place that talks to HiGHS.

    y[arc, p]          the step is taken while its target is partitioned by p; its cost is paid once      binary
    z[store, p]        the store is partitioned by p; of an intermediate at most one p: then it is kept   binary
    f[demand, arc, p]  the demand's path takes the step                                                   0..1

    leaving the start         sum of f = 1 for a query, = kept for the upkeep of an intermediate   (exactly one order)
    every node between        f in = f out
    step                      f[demand, arc, p] <= y[arc, p]                                       (shared, paid once)
    store, per demand         sum over arcs into it of f[demand, arc, p] <= z[store, p]            (one visit at most)

The last row is the tight form of "y <= z": a path visits a store once, so all its visits together stay below one
choice. The program covers some demands, given a ledger that holds the others: what these pay costs nothing more, and a
partitioning costs what it changes for them. With all demands and an empty ledger it is the whole problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import highspy
import numpy as np

from dovetail.optimizer.joint.flow import Flow
from dovetail.optimizer.joint.ledger import Ledger, Snapshot

RELATIVE_GAP = 1e-6
ROUGH_GAP = 5e-3
ROUGH_NODES = 2
CHOSEN = 0.5
FEASIBLE = 2
"""HiGHS's status of a solution that keeps all rows."""


@dataclass(frozen=True)
class Outcome:
    """A solution no worse than the start it was given; costs are what the demands add to the ledger of the others."""

    values: Sequence[float]
    cost: float
    bound: float
    is_optimal: bool


@dataclass
class IlpModel:
    """Columns and rows as HiGHS wants them, and what each column means. `useful` are the partitionings to choose from,
    per store; `others` holds all paths but those of the demands added here.
    """

    useful: Sequence[Sequence[int]]
    others: Ledger
    demands: list[int] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    is_binary: list[bool] = field(default_factory=list)
    step_column: dict[tuple[int, int], int] = field(default_factory=dict)
    choice_column: dict[tuple[int, int], int] = field(default_factory=dict)
    path_column: dict[tuple[int, int, int], int] = field(default_factory=dict)
    _row_starts: list[int] = field(default_factory=list)
    _indices: list[int] = field(default_factory=list)
    _values: list[float] = field(default_factory=list)
    _lower: list[float] = field(default_factory=list)
    _upper: list[float] = field(default_factory=list)

    @property
    def flow(self) -> Flow:
        return self.others.flow

    def is_given(self, store: int) -> bool:
        """Whether the store is there in any case."""
        return self.flow.stores[store].is_base or self.others.users[store] > 0

    def _column(self, cost: float, *, is_binary: bool) -> int:
        self.costs.append(cost)
        self.is_binary.append(is_binary)
        return len(self.costs) - 1

    def _row(self, lower: float, upper: float, terms: Iterable[tuple[int, float]]) -> None:
        self._row_starts.append(len(self._indices))
        for column, value in terms:
            self._indices.append(column)
            self._values.append(value)
        self._lower.append(lower)
        self._upper.append(upper)

    def add_choices(self, stores: Iterable[int]) -> None:
        for store in stores:
            useful, is_given = self.useful[store], self.is_given(store)
            if is_given and len(useful) == 1:
                continue
            upkeep = 0.0 if is_given else self.flow.stores[store].upkeep_cost
            for p in useful:
                change = self.others.change_by_partition(store, p)
                self.choice_column[store, p] = self._column(upkeep + change, is_binary=True)
            if len(useful) > 1:
                self._row(float(is_given), 1.0, [(self.choice_column[store, p], 1.0) for p in useful])

    def add_budget(self) -> None:
        if self.others.room < math.inf:
            opened = [(column, store) for (store, _), column in self.choice_column.items() if not self.is_given(store)]
            self._row(-math.inf, self.others.room, [(c, self.flow.stores[store].stored) for c, store in opened])

    def add_demand(self, number: int) -> None:
        self.demands.append(number)
        demand = self.flow.demands[number]
        balance: list[list[tuple[int, float]]] = [[] for _ in range(demand.node_count)]
        visits: dict[tuple[int, int], list[tuple[int, float]]] = {}
        for leg in demand.legs:
            target = self.flow.arcs[leg.arc].target
            for p in self.useful[target]:
                path = self._column(0.0, is_binary=False)
                self.path_column[number, leg.arc, p] = path
                if not self.others.takers[leg.arc]:
                    self._row(-math.inf, 0.0, ((path, 1.0), (self._step(leg.arc, p), -1.0)))
                balance[leg.tail].append((path, 1.0))
                balance[leg.head].append((path, -1.0))
                visits.setdefault((target, p), []).append((path, 1.0))
        kept = demand.intermediate
        wanted = [] if kept is None else [(self.choice_column[kept, p], -1.0) for p in self.useful[kept]]
        need = float(kept is None)
        self._row(need, need, balance[0] + wanted)
        for node in balance[1:-1]:
            self._row(0.0, 0.0, node)
        for key, terms in visits.items():
            if key in self.choice_column:
                self._row(-math.inf, 0.0, [*terms, (self.choice_column[key], -1.0)])

    def _step(self, arc: int, partitioning: int) -> int:
        column = self.step_column.get((arc, partitioning))
        if column is None:
            column = self._column(self.flow.arcs[arc].costs[partitioning], is_binary=True)
            self.step_column[arc, partitioning] = column
        return column

    def start_values(self, before: Snapshot) -> list[float]:
        """A state with paths for all demands as a solution of the program; its partitionings must be useful ones."""
        values = [0.0] * len(self.costs)
        for demand in self.demands:
            for arc in before.paths[demand] or ():
                p = before.partitionings[self.flow.arcs[arc].target]
                values[self.path_column[demand, arc, p]] = 1.0
                if (arc, p) in self.step_column:
                    values[self.step_column[arc, p]] = 1.0
        for (store, p), column in self.choice_column.items():
            is_there = self.is_given(store) or before.users[store] > 0
            values[column] = float(is_there and before.partitionings[store] == p)
        return values

    def chosen_arcs(self, values: Sequence[float]) -> set[int]:
        return {arc for (arc, _), column in self.step_column.items() if values[column] > CHOSEN}

    def chosen_partitionings(self, values: Sequence[float]) -> dict[int, int]:
        return {store: p for (store, p), column in self.choice_column.items() if values[column] > CHOSEN}

    def total(self, values: Sequence[float]) -> float:
        return float(np.dot(self.costs, values))

    def run(
        self,
        start: Sequence[float],
        seconds: float,
        *,
        is_rough: bool = False,
        report: Callable[[float], None] | None = None,
    ) -> Outcome:
        """Until optimal or out of time; `is_rough`: only to find something better soon, by the same way each time."""
        solver = highspy.Highs()  # type: ignore[no-untyped-call]
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("time_limit", max(seconds, 0.0))
        solver.setOptionValue("mip_rel_gap", ROUGH_GAP if is_rough else RELATIVE_GAP)
        solver.setOptionValue("parallel", "off")
        if is_rough:
            solver.setOptionValue("mip_max_nodes", ROUGH_NODES)
            solver.setOptionValue("mip_detect_symmetry", False)
            solver.setOptionValue("mip_allow_restart", False)
        solver.passModel(self._as_lp())
        solution = highspy.HighsSolution()
        solution.col_value = list(start)
        solver.setSolution(solution)
        if report is not None:
            solver.cbMipImprovingSolution.subscribe(lambda event: report(event.data_out.objective_function_value))
        solver.run()
        return self._outcome(solver, start)

    def _outcome(self, solver: highspy.Highs, start: Sequence[float]) -> Outcome:
        info = solver.getInfo()
        is_optimal = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
        found = list(solver.getSolution().col_value)
        start_cost = self.total(start)
        # HiGHS may be stopped before it has looked at the start, and then has no solution or an unfinished one.
        is_usable = info.primal_solution_status == FEASIBLE and self.total(found) <= start_cost
        values, cost = (found, self.total(found)) if is_usable else (start, start_cost)
        bound = info.mip_dual_bound if math.isfinite(info.mip_dual_bound) else -math.inf
        return Outcome(values, cost, min(bound, cost), is_optimal)

    def _as_lp(self) -> highspy.HighsLp:
        lp = highspy.HighsLp()
        columns = len(self.costs)
        lp.num_col_, lp.num_row_ = columns, len(self._lower)
        lp.col_cost_ = np.array(self.costs)
        lp.col_lower_, lp.col_upper_ = np.zeros(columns), np.ones(columns)
        lp.row_lower_, lp.row_upper_ = np.array(self._lower), np.array(self._upper)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.array([*self._row_starts, len(self._indices)], dtype=np.int32)
        lp.a_matrix_.index_ = np.array(self._indices, dtype=np.int32)
        lp.a_matrix_.value_ = np.array(self._values)
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[is_binary] for is_binary in self.is_binary]
        return lp
