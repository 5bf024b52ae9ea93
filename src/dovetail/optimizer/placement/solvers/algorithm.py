"""SASPAR's Algorithm 1: the exact program where it ends in time, and shortcuts in order, all within one budget.

    1 streams apart     what nothing connects is placed apart, in parallel
    round by round, the gap that is good enough doubling each time (2), and never past the time budget (3):
      the exact program, if it is small
    4 merged groups     nodes that share rows as one; then finer and finer
    7 merged partitions logical partitions first, then within each
    5 pair tree         two classes at a time, then two results at a time
    6 hybrid groups     classes that have much in common, the rest unshared

SASPAR takes the next shortcut when one finds nothing in time. Here a placement is always at hand (the best of the even
one, the given one and a local search from both), so the next is taken while nothing is proven good enough; the best of
all is kept, and each begins with what is already known where it can.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from dovetail.optimizer.placement.settings import Heuristic, Settings
from dovetail.optimizer.placement.solvers.budget import Budget
from dovetail.optimizer.placement.solvers.hybrid_groups import place_hybrid_groups
from dovetail.optimizer.placement.solvers.hypergraph import Hypergraph, Ints
from dovetail.optimizer.placement.solvers.merge_groups import place_merged
from dovetail.optimizer.placement.solvers.merge_partitions import place_merged_partitions
from dovetail.optimizer.placement.solvers.mip import column_count, solve_mip
from dovetail.optimizer.placement.solvers.pair_tree import place_pair_tree
from dovetail.optimizer.placement.solvers.search import FINE_LIMITS, balanced_start, plain_bound, search
from dovetail.optimizer.placement.solvers.streams_apart import connected_parts, place_apart

MOST_COLUMNS = 3_000
"""Of the exact program: larger ones do not end within seconds."""
EXACT_SHARE = 0.3
"""Of the time left, for the exact program."""
EXACT_GAP = 1e-6
ROUNDING = 1e-12
"""Costs that differ by less are equal, so that what is known stays."""


@dataclass(frozen=True)
class Improvement:
    """From this time on (since the start), a placement of this cost was at hand; None: known, searched or exact."""

    seconds: float
    cost: float
    heuristic: Heuristic | None


class Run:
    """The best placement of one graph so far, and how it came about."""

    def __init__(
        self, graph: Hypergraph, settings: Settings, known: list[Ints], started_at: float, budget: Budget
    ) -> None:
        self.graph = graph
        self.settings = settings
        self.started_at = started_at
        self.budget = budget
        self.bound = plain_bound(graph)
        self.improvements: list[Improvement] = []
        self.best, self.best_cost = known[0], math.inf
        for parts in known:
            self.take(parts, None)

    def take(self, parts: Ints | None, heuristic: Heuristic | None) -> None:
        """Keep the best; None: the heuristic does not apply."""
        if parts is None:
            return
        found = self.graph.cost(parts)
        if found < self.best_cost * (1 - ROUNDING):
            self.best, self.best_cost = parts, found
            self.improvements.append(Improvement(time.perf_counter() - self.started_at, found, heuristic))

    def is_good(self, gap: float) -> bool:
        return self.best_cost <= self.bound * (1 + gap) or self.budget.is_spent

    def solve(self) -> None:
        parts = connected_parts(self.graph) if "streams apart" in self.settings.heuristics else []
        if len(parts) > 1:
            self._solve_apart(parts)
        else:
            self._solve_together()

    def _solve_apart(self, parts: list[Ints]) -> None:
        lock = threading.Lock()
        bounds: list[float] = []

        def place(graph: Hypergraph, nodes: Ints) -> Ints:
            share = self.budget.share(len(nodes) / self.graph.node_count)
            run = Run(graph, self.settings, [self.best[nodes]], self.started_at, share)
            run.solve()
            with lock:
                bounds.append(run.bound)
            return run.best

        laid = place_apart(self.graph, parts, place)
        if len(self.graph.loads) > 1:
            self.bound = max(self.bound, self.graph.fixed_s + math.fsum(sorted(bounds)))
        self.take(laid, "streams apart")
        self.take(search(self.graph, self.best, self.budget), None)

    def _solve_together(self) -> None:
        chosen = self.settings.heuristics
        gap = self.settings.gap if "gap" in chosen else EXACT_GAP
        for number in range(self.settings.rounds):
            if self.is_good(gap):
                return
            before = self.best_cost
            self._round(number, gap)
            if number and self.best_cost > before * (1 - gap / 10):
                return
            gap = gap * 2 if "gap" in chosen else gap

    def _round(self, number: int, gap: float) -> None:
        if not number:
            self.take(search(self.graph, self.best, self.budget, FINE_LIMITS), None)
            self._exact(gap)
        for heuristic, step in self._steps(number):
            if self.is_good(gap):
                return
            if heuristic in self.settings.heuristics:
                self.take(step(), heuristic)

    def _exact(self, gap: float) -> None:
        if self.settings.exact_nodes != 0 and column_count(self.graph) <= MOST_COLUMNS:
            seconds = EXACT_SHARE * self.budget.seconds
            answer = solve_mip(self.graph, self.best, seconds, gap, self.settings.exact_nodes)
            self.bound = max(self.bound, answer.bound)
            self.take(answer.parts, None)

    def _steps(self, number: int) -> Iterator[tuple[Heuristic, Callable[[], Ints | None]]]:
        """Later rounds merge at random to a degree, so that they find other placements."""
        graph = self.graph
        rng = np.random.default_rng([self.settings.seed, number]) if number else None

        def place(part: Hypergraph) -> Ints:
            if "merged groups" in self.settings.heuristics:
                return place_merged(part, self.budget, rng)
            return search(part, balanced_start(part), self.budget)

        yield "merged groups", lambda: place_merged(graph, self.budget, rng)
        if number:
            yield "merged groups", lambda: place_merged(graph, self.budget, rng, within=self.best)
        yield "merged partitions", lambda: self._refined(place_merged_partitions(graph, 2 ** (number + 1), place))
        yield "pair tree", lambda: self._refined(place_pair_tree(graph, place))
        yield "hybrid groups", lambda: self._refined(place_hybrid_groups(graph, place))

    def _refined(self, parts: Ints | None) -> Ints | None:
        return None if parts is None else search(self.graph, parts, self.budget, FINE_LIMITS)
