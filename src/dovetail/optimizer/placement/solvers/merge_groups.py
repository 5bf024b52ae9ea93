"""Merged key groups (heuristic 4): groups that share most of their rows become one node, and so on with these.

SASPAR halves the number of key groups by uniting neighbours. Neighbours by number have nothing in common, and two
groups of one class share no row at all; so what is united here are the two nodes with the largest share of common rows,
of whatever classes, up to a cap of their load. A round halves the number of nodes at most. The fewest nodes are placed
first; then each round is taken back, and every time the search goes on with the finer nodes: what it could not find one
node at a time, it has found with many at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from dovetail.optimizer.placement.solvers.budget import Budget
from dovetail.optimizer.placement.solvers.hypergraph import ABSENT, Floats, Hypergraph, Ints
from dovetail.optimizer.placement.solvers.search import FINE_LIMITS, balanced_start, search

CLUSTERS_PER_PARTITION = 5
"""A cluster has at most this part of a partition's fair share of load, so that clusters can still be balanced."""
NEAR = 0.5
"""Candidates of a node are those that are at least so near as its nearest."""
RANDOM_STARTS = 3
"""For the fewest nodes, where a search costs little and decides most."""
NOISE = 0.3
"""How far likeness is off, at random, when other clusters are wanted than the obvious ones."""


def place_merged(
    graph: Hypergraph, budget: Budget, rng: np.random.Generator | None = None, within: Ints | None = None
) -> Ints:
    """From scratch, or `within` a known placement: only nodes of one partition are merged, and the search goes on from
    there. With `rng` the merging is random to a degree.
    """
    clusters = None if budget.is_spent else merge_similar(graph, rng, within)
    if clusters is None:
        if within is not None:
            return search(graph, within, budget)
        return min((search(graph, start, budget) for start in _starts(graph)), key=graph.cost)
    coarse = graph.contract(clusters)
    if within is None:
        parts = place_merged(coarse, budget, rng)[clusters]
    else:
        on_clusters = np.zeros(coarse.node_count, dtype=np.int64)
        on_clusters[clusters] = within
        parts = place_merged(coarse, budget, rng, on_clusters)[clusters]
    return search(graph, parts, budget, FINE_LIMITS)


def _starts(graph: Hypergraph) -> Iterator[Ints]:
    yield balanced_start(graph)
    rng = np.random.default_rng(graph.node_count)
    for _ in range(RANDOM_STARTS):
        yield rng.integers(graph.partition_count, size=graph.node_count)


def common_seconds(graph: Hypergraph) -> tuple[Ints, Ints, Floats]:
    """Pairs of nodes that share edges, and how much; what an edge has is divided among a node's partners."""
    sizes = (graph.edges != ABSENT).sum(axis=1)
    weights = graph.weights / np.maximum(sizes - 1, 1)
    keys, values = [], []
    for one, other in combinations(range(graph.edges.shape[1]), 2):
        has_both = graph.edges[:, one] != ABSENT
        keys.append(graph.edges[has_both, one] * graph.node_count + graph.edges[has_both, other])
        values.append(weights[has_both])
    all_keys = np.concatenate(keys)
    order = np.argsort(all_keys, kind="stable")
    all_keys = all_keys[order]
    firsts = np.flatnonzero(np.append(True, all_keys[1:] != all_keys[:-1]))
    ones, others = np.divmod(all_keys[firsts], graph.node_count)
    return ones, others, np.add.reduceat(np.concatenate(values)[order], firsts)


def merge_similar(graph: Hypergraph, rng: np.random.Generator | None = None, within: Ints | None = None) -> Ints | None:
    """A cluster per node, one per partition at least; None if nothing is worth merging."""
    count, least_count = graph.node_count, CLUSTERS_PER_PARTITION * graph.partition_count
    if count <= least_count or not len(graph.edges):
        return None
    ones, others, values = _likeness(graph, rng, within)
    loads = graph.loads.sum(axis=0)
    cap = loads.sum() / least_count
    head = np.arange(count)
    is_free = np.ones(count, dtype=bool)
    left = count
    for at in np.argsort(-values, kind="stable").tolist():
        one, other = ones[at], others[at]
        if left == least_count:
            break
        if is_free[one] and is_free[other] and loads[one] + loads[other] <= cap:
            is_free[one] = is_free[other] = False
            head[max(one, other)] = min(one, other)
            left -= 1
    if left == count:
        return None
    return np.unique(head, return_inverse=True)[1].astype(np.int64)


def _likeness(graph: Hypergraph, rng: np.random.Generator | None, within: Ints | None) -> tuple[Ints, Ints, Floats]:
    """Pairs of nodes and how alike they are: the cosine of the rows that they have."""
    ones, others, common = common_seconds(graph)
    sums = np.bincount(ones, common, minlength=graph.node_count) + np.bincount(
        others, common, minlength=graph.node_count
    )
    likeness = common / np.sqrt(sums[ones] * sums[others])
    if rng is not None:
        likeness *= rng.uniform(1 - NOISE, 1 + NOISE, len(likeness))
    if within is not None:
        likeness[within[ones] != within[others]] = 0.0
    nearest = np.zeros(graph.node_count)
    np.maximum.at(nearest, ones, likeness)
    np.maximum.at(nearest, others, likeness)
    is_near = (likeness > 0) & (likeness >= NEAR * np.minimum(nearest[ones], nearest[others]))
    return ones[is_near], others[is_near], likeness[is_near]
