"""Key classes that have much in common, put together two by two or in larger groups; and placements of groups that know
nothing of each other, laid over each other.
"""

from __future__ import annotations

import numpy as np

from dovetail.optimizer.placement.solvers.hypergraph import ABSENT, Hypergraph, Ints


def pair_up(graph: Hypergraph, groups: list[Ints]) -> list[Ints]:
    """Groups of nodes, two by two: those with most common rows first; an odd one stays alone."""
    common = _common_by_group(graph, groups)
    order = np.dstack(np.unravel_index(np.argsort(-common, axis=None, kind="stable"), common.shape))[0]
    left = dict(enumerate(groups))
    pairs = []
    for one, other in order.tolist():
        if one < other and one in left and other in left:
            pairs.append(np.sort(np.concatenate((left.pop(one), left.pop(other)))))
    return pairs + list(left.values())


def nodes_by_class(graph: Hypergraph) -> list[Ints]:
    return [np.flatnonzero(graph.classes == key_class) for key_class in np.unique(graph.classes)]


def _common_by_group(graph: Hypergraph, groups: list[Ints]) -> np.ndarray:
    group_by_node = np.full(graph.node_count + 1, len(groups), dtype=np.int64)
    for number, nodes in enumerate(groups):
        group_by_node[nodes] = number
    count = len(groups) + 1
    has_group = np.zeros((len(graph.edges), count))
    rows, columns = np.nonzero(graph.edges != ABSENT)
    has_group[rows, group_by_node[graph.edges[rows, columns]]] = 1.0
    common = has_group.T @ (has_group * graph.weights[:, None])
    return np.asarray(common[:-1, :-1])


def lay_over(graph: Hypergraph, groups: list[Ints], parts_by_group: list[Ints]) -> Ints:
    """Partitions are alike, so each group may number its own anew: its heaviest goes where the others left least."""
    parts = np.zeros(graph.node_count, dtype=np.int64)
    weights = graph.loads.sum(axis=0)
    loads = np.zeros(graph.partition_count)
    order = sorted(range(len(groups)), key=lambda number: (-weights[groups[number]].sum(), number))
    for number in order:
        nodes = groups[number]
        own = np.bincount(parts_by_group[number], weights[nodes], minlength=graph.partition_count)
        target = np.empty(graph.partition_count, dtype=np.int64)
        target[np.argsort(-own, kind="stable")] = np.argsort(loads, kind="stable")
        parts[nodes] = target[parts_by_group[number]]
        loads[target] += own
    return parts
