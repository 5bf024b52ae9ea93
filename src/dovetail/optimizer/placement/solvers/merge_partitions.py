"""Merged partitions (heuristic 7): first nodes are placed on logical partitions, each of several real ones; then the
nodes of each logical partition on its real ones, as a problem of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dovetail.optimizer.placement.solvers.hypergraph import Hypergraph, Ints

Place = Callable[[Hypergraph], Ints]


def place_merged_partitions(graph: Hypergraph, merged: int, place: Place) -> Ints | None:
    """So many real partitions a logical one; None if they do not come out even, or nothing is left to choose."""
    logical_count, rest = divmod(graph.partition_count, merged)
    if rest or merged < 2 or logical_count < 2:
        return None
    logical = place(replace(graph, partition_count=logical_count))
    parts = np.empty_like(logical)
    for number in range(logical_count):
        nodes = np.flatnonzero(logical == number)
        parts[nodes] = number * merged + place(graph.restrict(nodes, merged))
    return parts
