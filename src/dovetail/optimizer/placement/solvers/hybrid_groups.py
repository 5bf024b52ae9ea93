"""Hybrid groups (heuristic 6): classes that have most in common are placed together, sharing is not sought between
groups. A tuple that two groups happen to send to the same partition is shipped once all the same.
"""

from __future__ import annotations

from dovetail.optimizer.placement.solvers.class_groups import lay_over, nodes_by_class, pair_up
from dovetail.optimizer.placement.solvers.hypergraph import Hypergraph, Ints
from dovetail.optimizer.placement.solvers.merge_partitions import Place

MOST_GROUPS = 4


def place_hybrid_groups(graph: Hypergraph, place: Place) -> Ints | None:
    """None with fewer than three classes: two groups of one class each would share nothing."""
    groups = nodes_by_class(graph)
    if len(groups) < 3:
        return None
    groups = pair_up(graph, groups)
    while len(groups) > MOST_GROUPS:
        groups = pair_up(graph, groups)
    return lay_over(graph, groups, [place(graph.restrict(nodes)) for nodes in groups])
