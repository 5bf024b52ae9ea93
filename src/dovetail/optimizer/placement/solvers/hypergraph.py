"""The problem as solvers want it: key groups are nodes, cells are edges over any number of nodes.

    node   a key group of a class that some row has, with the seconds that a partition works on it
    edge   the nodes of a cell, each once; equal ones are one, whichever stream they come from
    cost   sum over edges of seconds per copy * partitions touched  +  seconds of the slowest partition

Edges of one node cost the same everywhere and are counted in `fixed_s`. All shortcuts are one of two operations on this
form: `restrict` looks at some nodes only, `contract` keeps some nodes together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dovetail.optimizer.placement.problem import PartitionByGroup, PlacementProblem

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ABSENT = -1


@dataclass(frozen=True, eq=False)
class Hypergraph:
    """`edges`: per edge its nodes ascending, after as many `ABSENT` as the widest edge has more. `loads`: per row of
    the objective (one over all streams, or one per stream) the seconds of each node; the slowest partition of each row
    is paid. `classes`: of each node, the key class.
    """

    partition_count: int
    edges: Ints
    weights: Floats
    loads: Floats
    classes: Ints
    fixed_s: float = 0.0

    @property
    def node_count(self) -> int:
        return len(self.classes)

    @cached_property
    def incidence(self) -> tuple[Ints, Ints]:
        """Edges of each node, one node after the other, and where each node's begin."""
        rows, columns = np.nonzero(self.edges != ABSENT)
        nodes = self.edges[rows, columns]
        order = np.argsort(nodes, kind="stable")
        starts = np.zeros(self.node_count + 1, dtype=np.int64)
        np.cumsum(np.bincount(nodes, minlength=self.node_count), out=starts[1:])
        return rows[order], starts

    def ship_s(self, parts: Ints) -> float:
        """Beyond `fixed_s`."""
        places = np.sort(np.where(self.edges == ABSENT, ABSENT, parts[self.edges]), axis=1)
        is_new = places != ABSENT
        is_new[:, 1:] &= places[:, 1:] != places[:, :-1]
        return float(np.dot(self.weights, is_new.sum(axis=1)))

    def part_loads(self, parts: Ints) -> Floats:
        """Per row and partition."""
        return np.array([np.bincount(parts, row, minlength=self.partition_count) for row in self.loads])

    def cost(self, parts: Ints) -> float:
        return self.fixed_s + self.ship_s(parts) + float(self.part_loads(parts).max(axis=1, initial=0.0).sum())

    def restrict(self, nodes: Ints, partition_count: int | None = None) -> Hypergraph:
        """Only these nodes, and what edges have of them."""
        number = np.full(self.node_count + 1, ABSENT, dtype=np.int64)
        number[nodes] = np.arange(len(nodes))
        edges, weights, _ = canonical_edges(number[self.edges], self.weights)
        count = self.partition_count if partition_count is None else partition_count
        return Hypergraph(count, edges, weights, self.loads[:, nodes], self.classes[nodes])

    def contract(self, cluster_by_node: Ints) -> Hypergraph:
        """Nodes of one cluster become one; what lies in one cluster alone becomes fixed. A cluster of several classes
        gets the least of them.
        """
        count = int(cluster_by_node.max(initial=-1)) + 1
        edges, weights, lone_s = canonical_edges(
            np.where(self.edges == ABSENT, ABSENT, cluster_by_node[self.edges]), self.weights
        )
        loads = np.array([np.bincount(cluster_by_node, row, minlength=count) for row in self.loads])
        classes = np.full(count, np.iinfo(np.int64).max)
        np.minimum.at(classes, cluster_by_node, self.classes)
        return Hypergraph(self.partition_count, edges, weights, loads, classes, self.fixed_s + lone_s)


def canonical_edges(edges: Ints, weights: Floats) -> tuple[Ints, Floats, float]:
    """Each node once in an edge, each edge once, none that costs nothing; and the weight of edges of one node."""
    edges, weights = np.sort(edges[weights > 0], axis=1), weights[weights > 0]
    edges[:, 1:][edges[:, 1:] == edges[:, :-1]] = ABSENT
    sizes = (edges != ABSENT).sum(axis=1)
    lone_s = float(weights[sizes == 1].sum())
    edges = np.sort(edges[sizes > 1], axis=1)
    width = int(sizes.max(initial=0))
    edges = edges[:, edges.shape[1] - width :]
    if not len(edges):
        return edges, np.zeros(0), lone_s
    order = np.lexsort(_packed(edges))
    edges, weights = edges[order], weights[sizes > 1][order]
    is_first = np.append(True, (edges[1:] != edges[:-1]).any(axis=1))
    return edges[is_first], np.add.reduceat(weights, np.flatnonzero(is_first)), lone_s


def _packed(edges: Ints) -> list[Ints]:
    """As many nodes as fit in one integer, so that sorting compares few of them."""
    bits = int(edges.max() + 2).bit_length()
    each = 62 // bits
    return [
        np.asarray(
            ((edges[:, at : at + each] + 1) << (bits * np.arange(edges[:, at : at + each].shape[1]))).sum(axis=1)
        )
        for at in range(0, edges.shape[1], each)
    ]


@dataclass(frozen=True, eq=False)
class Nodes:
    """Which key group each node of the whole problem's hypergraph is."""

    problem: PlacementProblem
    graph: Hypergraph
    keys: Ints
    """Per node class * group_count + group."""

    def parts(self, partition_by_group: PartitionByGroup) -> Ints:
        return np.array(partition_by_group, dtype=np.int64).ravel()[self.keys]

    def partition_by_group(self, parts: Ints) -> PartitionByGroup:
        """Key groups that no row has stay where an even placement puts them."""
        placed = np.array(self.problem.even(), dtype=np.int64)
        placed.ravel()[self.keys] = parts
        return tuple(tuple(row) for row in placed.tolist())


def build_hypergraph(problem: PlacementProblem) -> Nodes:
    """Cells without rows, and rows that no use wants, leave no trace."""
    costs, key_count = problem.costs, problem.class_count * problem.group_count
    width = max((len(stream.use_classes) for stream in problem.streams), default=0)
    cells, weights = [], []
    loads = np.zeros((max(1, len(problem.streams)), key_count))
    seen = np.zeros(key_count, dtype=bool)
    for number, stream in enumerate(problem.streams):
        offsets = np.array(stream.use_classes, dtype=np.int64) * problem.group_count
        groups = np.array(
            [[ABSENT if group is None else group for group in cell.groups] for cell in stream.cells], dtype=np.int64
        ).reshape(len(stream.cells), len(offsets))
        rows = np.array([cell.rows for cell in stream.cells])
        groups, rows = groups[rows > 0], rows[rows > 0]
        keys = np.where(groups == ABSENT, ABSENT, groups + offsets)
        is_key = keys != ABSENT
        work = np.broadcast_to(rows[:, None] * costs.process_s, keys.shape)
        loads[number] = np.bincount(keys[is_key], work[is_key], minlength=key_count)
        seen[keys[is_key]] = True
        padded = np.full((len(keys), width), ABSENT, dtype=np.int64)
        padded[:, : keys.shape[1]] = keys
        cells.append(padded)
        weights.append(rows * stream.row_weight * costs.copy_s)
    if costs.load_of == "all streams":
        loads = loads.sum(axis=0, keepdims=True)
    keys = np.flatnonzero(seen)
    number_by_key = np.full(key_count + 1, ABSENT, dtype=np.int64)
    number_by_key[keys] = np.arange(len(keys))
    all_cells = np.concatenate(cells) if cells else np.zeros((0, 0), dtype=np.int64)
    edges, edge_weights, lone_s = canonical_edges(
        number_by_key[all_cells], np.concatenate(weights) if weights else np.zeros(0)
    )
    classes = keys // problem.group_count
    graph = Hypergraph(problem.partition_count, edges, edge_weights, loads[:, keys], classes, lone_s)
    return Nodes(problem, graph, keys)
