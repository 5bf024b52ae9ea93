"""Local search from any placement: passes of moves under several limits of load, until none finds anything better."""

from __future__ import annotations

from functools import cache

import numpy as np

from dovetail.optimizer.placement.solvers.budget import Budget
from dovetail.optimizer.placement.solvers.hypergraph import Floats, Hypergraph, Ints
from dovetail.optimizer.placement.solvers.moves import build_tables, descend, shipping, slowest

PATIENCE = 80
"""Moves in a row that a pass goes on without a better state."""
OVER_LIMIT = 2.0
"""What a second above the limit costs."""
LIMITS = (1.005, 1.03, 1.1, 1.3, 2.0)
"""Over the least that the slowest partition can have."""
FINE_LIMITS = (1.005, 1.03)
LEAST_GAIN = 1e-3
"""A pass that gains less of the cost is the last."""


def least_slowest(graph: Hypergraph) -> Floats:
    """Per row: no placement has a slowest partition below the mean, nor below the heaviest node."""
    means = graph.loads.sum(axis=1) / graph.partition_count
    return np.asarray(np.maximum(means, graph.loads.max(axis=1, initial=0.0)))


def plain_bound(graph: Hypergraph) -> float:
    """What no placement can cost less than: each tuple is shipped once, and the slowest partition has the least that
    it can have. Tight where all keys of a stream hang together.
    """
    return graph.fixed_s + float(graph.weights.sum()) + float(least_slowest(graph).sum())


def search(graph: Hypergraph, start: Ints, budget: Budget, limits: tuple[float, ...] = LIMITS) -> Ints:
    """Never worse than the start; the same each time unless a deadline ends it."""
    best, best_cost = start, np.inf
    if graph.partition_count == 1 or not graph.node_count:
        return best
    for limit in limits:
        if budget.is_spent:
            break
        parts, cost = _pass_until_settled(graph, best, least_slowest(graph) * limit, budget)
        if cost < best_cost:
            best, best_cost = parts, cost
    return best


def _pass_until_settled(graph: Hypergraph, start: Ints, limits: Floats, budget: Budget) -> tuple[Ints, float]:
    tables = build_tables(graph, start)
    ship_s = shipping(tables)
    best, best_cost, led = start, ship_s + slowest(tables), np.inf
    while not budget.is_spent:
        budget.spend_pass(graph)
        ship_s, cost, parts = descend(tables, limits, OVER_LIMIT, ship_s, PATIENCE)
        if cost < best_cost:
            best, best_cost = parts, cost
        before, led = led, ship_s + OVER_LIMIT * float(np.maximum(tables.loads - limits[:, None], 0.0).sum())
        if led >= before * (1 - LEAST_GAIN):
            break
    return best, best_cost


def balanced_start(graph: Hypergraph) -> Ints:
    """Heavy nodes first, each on the partition with least load: even, and nothing shared on purpose."""
    loads = np.zeros(graph.partition_count)
    parts = np.zeros(graph.node_count, dtype=np.int64)
    weights = graph.loads.sum(axis=0)
    for node in np.argsort(-weights, kind="stable"):
        parts[node] = loads.argmin()
        loads[parts[node]] += weights[node]
    return parts


@cache
def compile_moves() -> None:
    """What the first search of a process compiles, or reads from its cache, is no part of anyone's time budget."""
    graph = Hypergraph(2, np.array([[0, 1]]), np.ones(1), np.ones((1, 2)), np.zeros(2, dtype=np.int64))
    search(graph, np.zeros(2, dtype=np.int64), Budget(), LIMITS[:1])
