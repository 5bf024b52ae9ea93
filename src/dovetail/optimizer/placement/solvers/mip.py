"""The exact form: the placement as an integer program.

    a[node, p]   the node is on partition p                                   binary     (Eq. 1)
    y[edge, p]   partition p gets a copy of the edge's tuples                 0..1       (Eq. 4's max, by Eq. 5)
    m[row]       seconds of the slowest partition                                        (Eq. 9's max)

    each node        sum over p of a = 1                                                 (Eq. 2)
    copies           y[edge, p] >= a[node, p] for each node of the edge
    slowest          m[row] >= sum over nodes of load * a[node, p], for each p           (Eq. 6, 8)
    minimize         sum of weight * y + sum of m                                        (Eq. 9, 10)

Eq. 3 needs no row: uses of one class share their nodes. Partitions are alike, so every solution would come once per
numbering of them: nodes are taken in the order of their weight, and a partition may be opened only by a node whose
predecessors opened the one before it. That, and equal cells being one edge, is what makes small cases fast.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dovetail.optimizer.integer_program import IntegerProgram, SolveBudget
from dovetail.optimizer.placement.solvers.hypergraph import ABSENT, Floats, Hypergraph, Ints

COST_OF_START = 1_000.0
"""HiGHS has absolute tolerances, so what a placement costs must neither be tiny nor huge."""
OPENING_NODES = 3
"""Rows about opening partitions for so many nodes per partition: by then, all are open."""


@dataclass(frozen=True, eq=False)
class MipAnswer:
    """Never worse than the start. `bound`: no placement of this graph costs less."""

    parts: Ints
    cost: float
    bound: float
    is_optimal: bool


def column_count(graph: Hypergraph) -> int:
    return (graph.node_count + len(graph.edges)) * graph.partition_count + len(graph.loads)


def solve_mip(graph: Hypergraph, start: Ints, seconds: float, gap: float, max_nodes: int | None = None) -> MipAnswer:
    """Until proven to be within the gap of optimal, or out of time; the same answer each time if time is left."""
    start_cost = graph.cost(start)
    if not start_cost:
        return MipAnswer(start, 0.0, 0.0, is_optimal=True)
    model = _Model(graph, COST_OF_START / start_cost)
    known = model.values_of(_number_by_first_use(start, model.order))
    answer = model.program.solve(known.tolist(), SolveBudget(seconds, gap, max_nodes))
    parts = start
    if answer.values is not None:
        parts = min(start, model.parts_of(np.array(answer.values)), key=graph.cost)
    cost = graph.cost(parts)
    least = answer.bound / COST_OF_START * start_cost
    bound = least + graph.fixed_s if math.isfinite(least) else 0.0
    return MipAnswer(parts, cost, min(bound, cost), answer.is_optimal)


def _number_by_first_use(parts: Ints, order: Ints) -> Ints:
    """The same placement with partitions numbered as nodes open them."""
    _, first_uses, inverse = np.unique(parts[order], return_index=True, return_inverse=True)
    rank = np.empty(len(first_uses), dtype=np.int64)
    rank[np.argsort(first_uses)] = np.arange(len(first_uses))
    renumbered = np.empty_like(parts)
    renumbered[order] = rank[inverse]
    return renumbered


class _Model:
    """The program and what its columns mean: a, then y, then m."""

    def __init__(self, graph: Hypergraph, scale: float) -> None:
        self.graph = graph
        self.weights, self.loads = graph.weights * scale, graph.loads * scale
        self.order = np.argsort(-(graph.loads.sum(axis=0) + _shipping_by_node(graph)), kind="stable")
        partitions = graph.partition_count
        self.copies_at = graph.node_count * partitions
        self.slowest_at = self.copies_at + len(graph.edges) * partitions
        self.program = IntegerProgram()
        self._add_columns()
        self._add_places()
        self._add_copies()
        self._add_slowest()
        self._add_openings()

    def _add_columns(self) -> None:
        graph = self.graph
        places, copies = self.copies_at, self.slowest_at - self.copies_at
        may_be = np.ones(places)
        for rank, node in enumerate(self.order[: graph.partition_count]):
            may_be[node * graph.partition_count + rank + 1 : (node + 1) * graph.partition_count] = 0.0
        self.program.add_columns(np.zeros(places), np.zeros(places), may_be, is_integer=True)
        weights = np.repeat(self.weights, graph.partition_count)
        self.program.add_columns(weights, np.zeros(copies), np.ones(copies), is_integer=False)
        rows = len(self.loads)
        least = np.maximum(self.loads.sum(axis=1) / graph.partition_count, self.loads.max(axis=1, initial=0.0))
        self.program.add_columns(np.ones(rows), least, np.full(rows, math.inf), is_integer=False)

    def _add_places(self) -> None:
        nodes, partitions = self.graph.node_count, self.graph.partition_count
        columns = np.arange(nodes * partitions)
        self.program.add_rows(nodes, 1.0, 1.0, (columns // partitions, columns, 1.0))

    def _add_copies(self) -> None:
        partitions = np.arange(self.graph.partition_count)
        edges, at = np.nonzero(self.graph.edges != ABSENT)
        nodes = self.graph.edges[edges, at]
        count = len(edges) * len(partitions)
        rows = np.arange(count)
        copies = self.copies_at + edges[:, None] * len(partitions) + partitions
        places = nodes[:, None] * len(partitions) + partitions
        self.program.add_rows(count, 0.0, math.inf, (rows, copies.ravel(), 1.0), (rows, places.ravel(), -1.0))

    def _add_slowest(self) -> None:
        nodes, partitions = self.graph.node_count, self.graph.partition_count
        for number, loads in enumerate(self.loads):
            columns = np.arange(nodes * partitions)
            slowest = np.full(partitions, self.slowest_at + number)
            self.program.add_rows(
                partitions,
                0.0,
                math.inf,
                (np.arange(partitions), slowest, 1.0),
                (columns % partitions, columns, -np.repeat(loads, partitions)),
            )

    def _add_openings(self) -> None:
        """a[node, p] <= sum over nodes before it of a[other, p - 1]."""
        partitions = self.graph.partition_count
        for rank in range(1, min(self.graph.node_count, OPENING_NODES * partitions)):
            for p in range(1, min(rank, partitions - 1) + 1):
                before = self.order[p - 1 : rank] * partitions + p - 1
                opened = np.array([self.order[rank] * partitions + p])
                row = np.zeros(1, dtype=np.int64)
                self.program.add_rows(1, 0.0, math.inf, (row, opened, -1.0), (np.zeros_like(before), before, 1.0))

    def values_of(self, parts: Ints) -> Floats:
        graph = self.graph
        places = np.zeros((graph.node_count, graph.partition_count))
        places[np.arange(graph.node_count), parts] = 1.0
        of_edges = np.where(self.graph.edges[:, :, None] == ABSENT, 0.0, places[graph.edges])
        copies = of_edges.max(axis=1, initial=0.0)
        slowest = np.array([np.bincount(parts, row).max(initial=0.0) for row in self.loads])
        return np.concatenate((places.ravel(), copies.ravel(), slowest))

    def parts_of(self, values: Floats) -> Ints:
        places = values[: self.copies_at].reshape(self.graph.node_count, self.graph.partition_count)
        return np.asarray(places.argmax(axis=1), dtype=np.int64)


def _shipping_by_node(graph: Hypergraph) -> Floats:
    edges, starts = graph.incidence
    nodes = np.repeat(np.arange(graph.node_count), np.diff(starts))
    return np.bincount(nodes, graph.weights[edges], minlength=graph.node_count).astype(np.float64)
