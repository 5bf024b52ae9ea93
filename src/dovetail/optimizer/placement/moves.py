"""Tables of what moving a node costs, and the loop that lives on them; the only compiled code of the optimizer.

    arriving[node, p]   copies that its edges would newly send to p                 a move to p costs
    leaving[node]       copies that its partition gets only because of it           arriving - leaving

A move changes the tables only of nodes that share an edge with the moved one, so millions of moves fit in a second.
The slowest partition alone tells no direction (most moves do not change it), so the loop is led by limits: seconds
above the limit are paid in every partition. What it remembers as best goes by the true cost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dovetail.optimizer.placement.hypergraph import ABSENT, Floats, Hypergraph, Ints


class Tables(NamedTuple):
    """Edges and their nodes both ways, and the state. `numbers`: per edge and partition how many nodes are there."""

    edge_starts: Ints
    edge_nodes: Ints
    node_starts: Ints
    node_edges: Ints
    weights: Floats
    node_loads: Floats
    parts: Ints
    numbers: NDArray[np.int32]
    arriving: Floats
    leaving: Floats
    loads: Floats


def build_tables(graph: Hypergraph, parts: Ints) -> Tables:
    is_node = graph.edges != ABSENT
    edge_starts = np.zeros(len(graph.edges) + 1, dtype=np.int64)
    np.cumsum(is_node.sum(axis=1), out=edge_starts[1:])
    node_edges, node_starts = graph.incidence
    tables = Tables(
        edge_starts,
        graph.edges[is_node],
        node_starts,
        node_edges,
        graph.weights,
        np.ascontiguousarray(graph.loads),
        parts.astype(np.int64),
        np.zeros((len(graph.edges), graph.partition_count), dtype=np.int32),
        np.zeros((graph.node_count, graph.partition_count)),
        np.zeros(graph.node_count),
        graph.part_loads(parts),
    )
    fill_tables(tables)
    return tables


@njit(cache=True, nogil=True)
def fill_tables(tables: Tables) -> None:
    numbers, arriving, leaving, parts = tables.numbers, tables.arriving, tables.leaving, tables.parts
    for edge in range(len(tables.weights)):
        nodes = tables.edge_nodes[tables.edge_starts[edge] : tables.edge_starts[edge + 1]]
        weight = tables.weights[edge]
        for node in nodes:
            numbers[edge, parts[node]] += 1
        for node in nodes:
            if numbers[edge, parts[node]] == 1:
                leaving[node] += weight
            for p in range(numbers.shape[1]):
                if numbers[edge, p] == 0:
                    arriving[node, p] += weight


@njit(cache=True, nogil=True)
def move(tables: Tables, node: int, target: int) -> None:
    """To another partition than its own."""
    parts, arriving, leaving, loads = tables.parts, tables.arriving, tables.leaving, tables.loads
    source = parts[node]
    parts[node] = target
    for row in range(len(loads)):
        loads[row, source] -= tables.node_loads[row, node]
        loads[row, target] += tables.node_loads[row, node]
    staying = 0.0
    for at in range(tables.node_starts[node], tables.node_starts[node + 1]):
        edge = tables.node_edges[at]
        weight, numbers = tables.weights[edge], tables.numbers[edge]
        numbers[source] -= 1
        numbers[target] += 1
        left, found = numbers[source], numbers[target]
        if found == 1:
            staying += weight
        if left > 1 and found > 2:
            continue
        for member in tables.edge_nodes[tables.edge_starts[edge] : tables.edge_starts[edge + 1]]:
            if left == 0:
                arriving[member, source] += weight
            elif left == 1 and parts[member] == source:
                leaving[member] += weight
            if found == 1:
                arriving[member, target] -= weight
            elif found == 2 and parts[member] == target and member != node:
                leaving[member] -= weight
    leaving[node] = staying


@njit(cache=True, nogil=True)
def load_change(tables: Tables, limits: Floats, node: int, target: int) -> float:
    """Seconds above the limits, after a move and before."""
    source, change = tables.parts[node], 0.0
    for row in range(len(limits)):
        load = tables.node_loads[row, node]
        before = tables.loads[row, source] - limits[row]
        there = tables.loads[row, target] - limits[row]
        change += max(before - load, 0.0) - max(before, 0.0) + max(there + load, 0.0) - max(there, 0.0)
    return change


@njit(cache=True, nogil=True)
def slowest(tables: Tables) -> float:
    total = 0.0
    for row in range(len(tables.loads)):
        total += tables.loads[row].max()
    return total


@njit(cache=True, nogil=True)
def shipping(tables: Tables) -> float:
    total = 0.0
    for edge in range(len(tables.weights)):
        for p in range(tables.numbers.shape[1]):
            if tables.numbers[edge, p]:
                total += tables.weights[edge]
    return total


@njit(cache=True, nogil=True)
def descend(tables: Tables, limits: Floats, over: float, ship_s: float, patience: int) -> tuple[float, float, Ints]:
    """One pass after Fiduccia and Mattheyses: each node moves once at most, the best move first, also uphill; then back
    to the best state by what leads. Shipping there, and the cost and the placement of the truly best state seen.
    """
    node_count, partition_count = tables.arriving.shape
    is_free = np.ones(node_count, dtype=np.bool_)
    moved, sources = np.empty(node_count, dtype=np.int64), np.empty(node_count, dtype=np.int64)
    best_parts, best_cost = tables.parts.copy(), ship_s + slowest(tables)
    led, least, kept, kept_ship_s, count = 0.0, -1e-12 * best_cost, 0, ship_s, 0
    while count < node_count and count - kept <= patience:
        change, node, target = np.inf, -1, -1
        for candidate in range(node_count):
            if is_free[candidate]:
                source = tables.parts[candidate]
                for p in range(partition_count):
                    if p != source:
                        new = tables.arriving[candidate, p] - tables.leaving[candidate]
                        if new < change:
                            new += over * load_change(tables, limits, candidate, p)
                            if new < change:
                                change, node, target = new, candidate, p
        if node < 0:
            break
        is_free[node] = False
        moved[count], sources[count] = node, tables.parts[node]
        ship_s += tables.arriving[node, target] - tables.leaving[node]
        move(tables, node, target)
        count += 1
        led += change
        if led < least:
            least, kept, kept_ship_s = led, count, ship_s
        cost = ship_s + slowest(tables)
        if cost < best_cost:
            best_cost = cost
            best_parts[:] = tables.parts
    for at in range(count - 1, kept - 1, -1):
        move(tables, moved[at], sources[at])
    return kept_ship_s, best_cost, best_parts
