"""The integer program (CLASH section V) over arcs instead of orders.

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

from dovetail.optimizer.integer_program import IntegerProgram, SolveBudget
from dovetail.optimizer.joint.solvers.flow import Flow
from dovetail.optimizer.joint.solvers.ledger import Ledger, Snapshot

RELATIVE_GAP = 1e-6
ROUGH_GAP = 5e-3
ROUGH_NODES = 2
CHOSEN = 0.5


@dataclass(frozen=True)
class Outcome:
    """A solution no worse than the start it was given; costs are what the demands add to the ledger of the others."""

    values: Sequence[float]
    cost: float
    bound: float
    is_optimal: bool


@dataclass
class IlpModel:
    """A program, and what each column of it means. `useful` are the partitionings to choose from, per store; `others`
    holds all paths but those of the demands added here.
    """

    useful: Sequence[Sequence[int]]
    others: Ledger
    demands: list[int] = field(default_factory=list)
    program: IntegerProgram = field(default_factory=IntegerProgram)
    step_column: dict[tuple[int, int], int] = field(default_factory=dict)
    choice_column: dict[tuple[int, int], int] = field(default_factory=dict)
    path_column: dict[tuple[int, int, int], int] = field(default_factory=dict)

    @property
    def flow(self) -> Flow:
        return self.others.flow

    def is_given(self, store: int) -> bool:
        """Whether the store is there in any case."""
        return self.flow.stores[store].is_base or self.others.users[store] > 0

    def add_choices(self, stores: Iterable[int]) -> None:
        for store in stores:
            useful, is_given = self.useful[store], self.is_given(store)
            if is_given and len(useful) == 1:
                continue
            upkeep = 0.0 if is_given else self.flow.stores[store].upkeep_cost
            for p in useful:
                change = self.others.change_by_partition(store, p)
                self.choice_column[store, p] = self.program.add_column(upkeep + change, is_integer=True)
            if len(useful) > 1:
                self.program.add_row(float(is_given), 1.0, [(self.choice_column[store, p], 1.0) for p in useful])

    def add_budget(self) -> None:
        if self.others.room < math.inf:
            opened = [(column, store) for (store, _), column in self.choice_column.items() if not self.is_given(store)]
            self.program.add_row(
                -math.inf, self.others.room, [(c, self.flow.stores[store].stored) for c, store in opened]
            )

    def add_demand(self, number: int) -> None:
        self.demands.append(number)
        demand = self.flow.demands[number]
        balance: list[list[tuple[int, float]]] = [[] for _ in range(demand.node_count)]
        visits: dict[tuple[int, int], list[tuple[int, float]]] = {}
        for step in demand.path_arcs:
            target = self.flow.arcs[step.arc].target
            for p in self.useful[target]:
                path = self.program.add_column(0.0, is_integer=False)
                self.path_column[number, step.arc, p] = path
                if not self.others.takers[step.arc]:
                    self.program.add_row(-math.inf, 0.0, ((path, 1.0), (self._step(step.arc, p), -1.0)))
                balance[step.tail].append((path, 1.0))
                balance[step.head].append((path, -1.0))
                visits.setdefault((target, p), []).append((path, 1.0))
        kept = demand.intermediate
        wanted = [] if kept is None else [(self.choice_column[kept, p], -1.0) for p in self.useful[kept]]
        need = float(kept is None)
        self.program.add_row(need, need, balance[0] + wanted)
        for node in balance[1:-1]:
            self.program.add_row(0.0, 0.0, node)
        for key, terms in visits.items():
            if key in self.choice_column:
                self.program.add_row(-math.inf, 0.0, [*terms, (self.choice_column[key], -1.0)])

    def _step(self, arc: int, partitioning: int) -> int:
        column = self.step_column.get((arc, partitioning))
        if column is None:
            column = self.program.add_column(self.flow.arcs[arc].costs[partitioning], is_integer=True)
            self.step_column[arc, partitioning] = column
        return column

    def start_values(self, before: Snapshot) -> list[float]:
        """A state with paths for all demands as a solution of the program; its partitionings must be useful ones."""
        values = [0.0] * len(self.program.costs)
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

    def run(
        self,
        start: Sequence[float],
        seconds: float,
        *,
        is_rough: bool = False,
        report: Callable[[float], None] | None = None,
    ) -> Outcome:
        """Until optimal or out of time; `is_rough`: only to find something better soon, by the same way each time."""
        budget = SolveBudget(seconds, ROUGH_GAP, ROUGH_NODES) if is_rough else SolveBudget(seconds, RELATIVE_GAP)
        answer = self.program.solve(start, budget, report)
        values, cost = start, self.program.total(start)
        if answer.values is not None and self.program.total(answer.values) <= cost:
            values, cost = answer.values, self.program.total(answer.values)
        return Outcome(values, cost, min(answer.bound, cost), answer.is_optimal)
