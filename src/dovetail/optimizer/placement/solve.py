"""Where key groups live: the best placement that is found in time, what it costs, and what none can cost less than."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from dovetail.optimizer.placement.cost import PlacementCost, cost
from dovetail.optimizer.placement.problem import PartitionByGroup, PlacementProblem
from dovetail.optimizer.placement.settings import Heuristic, Settings
from dovetail.optimizer.placement.solvers.algorithm import Improvement, Run
from dovetail.optimizer.placement.solvers.budget import Budget
from dovetail.optimizer.placement.solvers.hypergraph import build_hypergraph
from dovetail.optimizer.placement.solvers.renumber import renumber_like
from dovetail.optimizer.placement.solvers.search import compile_moves


@dataclass(frozen=True)
class PlacementSolution:
    """`bound`: no placement costs fewer seconds a batch. `seconds`: what finding it took."""

    partition_by_group: PartitionByGroup
    cost: PlacementCost
    bound: float
    seconds: float
    improvements: tuple[Improvement, ...]

    @property
    def gap(self) -> float:
        """How much of the cost might still be saved at most, 0 to 1."""
        return 1 - self.bound / self.cost.seconds if self.cost.seconds else 0.0

    @property
    def heuristics_used(self) -> frozenset[Heuristic]:
        """Those that found something better than what was known."""
        return frozenset(each.heuristic for each in self.improvements if each.heuristic is not None)

    def seconds_within(self, share: float, reference: float) -> float | None:
        """When a placement of at most (1 + share) * reference was first at hand."""
        times = [each.seconds for each in self.improvements if each.cost <= (1 + share) * reference]
        return min(times, default=None)


def solve_placement(
    problem: PlacementProblem, settings: Settings | None = None, start: PartitionByGroup | None = None
) -> PlacementSolution:
    """Never worse than the even placement or `start`, whose numbers of partitions it keeps where it can. The same for
    the same input, unless the time budget ends it.
    """
    settings = settings or Settings()
    compile_moves()
    started_at = time.perf_counter()
    nodes = build_hypergraph(problem)
    graph = nodes.graph
    known = [problem.even()] if start is None else [start, problem.even()]
    for each in known:
        problem.check(each)
    known_parts = [nodes.parts(each) for each in known]
    deadline = started_at + settings.time_budget_s if "time budget" in settings.heuristics else math.inf
    run = Run(graph, settings, known_parts, started_at, Budget(settings.work, deadline))
    run.solve()
    parts = renumber_like(graph, run.best, known_parts[0])
    placement = nodes.partition_by_group(parts)
    found = cost(problem, placement)
    seconds = time.perf_counter() - started_at
    return PlacementSolution(placement, found, min(run.bound, found.seconds), seconds, tuple(run.improvements))
