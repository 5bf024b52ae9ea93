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

from dovetail.optimizer.placement.solvers.hypergraph import ABSENT, Floats, Hypergraph, Ints


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
def best_of(tables: Tables, limits: Floats, over: float, node: int) -> tuple[float, int]:
    """What the best move of a node changes, and where it goes."""
    source, change, target = tables.parts[node], np.inf, -1
    for p in range(tables.arriving.shape[1]):
        if p != source:
            new = tables.arriving[node, p] - tables.leaving[node]
            new += over * load_change(tables, limits, node, p)
            if new < change:
                change, target = new, p
    return change, target


@njit(cache=True, nogil=True)
def note_relief(
    tables: Tables, limits: Floats, over: float, source: int, target: int, changes: Floats, targets: Ints
) -> None:
    """After a move, the partition left has more room, and whoever is on the other may want to leave it."""
    is_over = (tables.loads[:, target] > limits).any()
    for node in range(len(changes)):
        if tables.parts[node] == target:
            if is_over:
                changes[node], targets[node] = best_of(tables, limits, over, node)
        elif tables.parts[node] != source:
            new = tables.arriving[node, source] - tables.leaving[node]
            new += over * load_change(tables, limits, node, source)
            if new < changes[node]:
                changes[node], targets[node] = new, source


@njit(cache=True, nogil=True)
def note_company(
    tables: Tables, limits: Floats, over: float, node: int, source: int, changes: Floats, targets: Ints
) -> None:
    """After a move, who shares an edge with the node may want to follow it."""
    target = tables.parts[node]
    for at in range(tables.node_starts[node], tables.node_starts[node + 1]):
        edge = tables.node_edges[at]
        is_alone, is_new = tables.numbers[edge, source] == 1, tables.numbers[edge, target] == 1
        if is_alone or is_new:
            for member in tables.edge_nodes[tables.edge_starts[edge] : tables.edge_starts[edge + 1]]:
                if is_alone and tables.parts[member] == source:
                    changes[member] -= tables.weights[edge]
                if is_new and tables.parts[member] != target:
                    new = tables.arriving[member, target] - tables.leaving[member]
                    new += over * load_change(tables, limits, member, target)
                    if new < changes[member]:
                        changes[member], targets[member] = new, target


@njit(cache=True, nogil=True)
def descend(tables: Tables, limits: Floats, over: float, ship_s: float, patience: int) -> tuple[float, float, Ints]:
    """One pass after Fiduccia and Mattheyses: each node moves once at most, the best move first, also uphill; then back
    to the best state by what leads. Shipping there, and the cost and the placement of the truly best state seen.

    What the best move of each node changes is remembered. A move updates what it makes better; what it makes worse is
    seen when the node is about to move, and then another may be the best.
    """
    node_count = len(tables.parts)
    is_free = np.ones(node_count, dtype=np.bool_)
    changes, targets = np.empty(node_count), np.empty(node_count, dtype=np.int64)
    for node in range(node_count):
        changes[node], targets[node] = best_of(tables, limits, over, node)
    moved, sources = np.empty(node_count, dtype=np.int64), np.empty(node_count, dtype=np.int64)
    best_parts, best_cost = tables.parts.copy(), ship_s + slowest(tables)
    led, least, kept, kept_ship_s, count = 0.0, -1e-12 * best_cost, 0, ship_s, 0
    while count < node_count and count - kept <= patience:
        change, node = np.inf, -1
        for candidate in range(node_count):
            if is_free[candidate] and changes[candidate] < change:
                change, node = changes[candidate], candidate
        if node < 0:
            break
        changes[node], targets[node] = best_of(tables, limits, over, node)
        if changes[node] > change + 1e-12 * best_cost:
            continue
        is_free[node] = False
        source, target = tables.parts[node], targets[node]
        moved[count], sources[count] = node, source
        ship_s += tables.arriving[node, target] - tables.leaving[node]
        led += changes[node]
        move(tables, node, target)
        note_relief(tables, limits, over, source, target, changes, targets)
        note_company(tables, limits, over, node, source, changes, targets)
        count += 1
        if led < least:
            least, kept, kept_ship_s = led, count, ship_s
        cost = ship_s + slowest(tables)
        if cost < best_cost:
            best_cost = cost
            best_parts[:] = tables.parts
    for at in range(count - 1, kept - 1, -1):
        move(tables, moved[at], sources[at])
    return kept_ship_s, best_cost, best_parts
