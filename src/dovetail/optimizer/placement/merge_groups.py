"""Merged key groups (heuristic 4): groups that share most of their rows become one node, and so on with these.

SASPAR halves the number of key groups by uniting neighbours. Neighbours by number have nothing in common, and two
groups of one class share no row at all; so what is united here are the two nodes with the largest share of common rows,
of whatever classes, up to a cap of their load. A round halves the number of nodes at most. The fewest nodes are placed
first; then each round is taken back, and every time the search goes on with the finer nodes: what it could not find one
node at a time, it has found with many at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from dovetail.optimizer.placement.hypergraph import ABSENT, Floats, Hypergraph, Ints
from dovetail.optimizer.placement.search import FINE_LIMITS, balanced_start, search

PARTNERS = 4
"""Candidates of each node: its nearest ones."""
MOST_NODES = 6_000
"""With more, the table of all pairs gets too large."""
CLUSTERS_PER_PARTITION = 3
"""A cluster has at most this part of a partition's fair share of load, so that clusters can still be balanced."""
RANDOM_STARTS = 3
"""For the fewest nodes, where a search costs little and decides most."""
NOISE = 0.3
"""How far likeness is off, at random, when other clusters are wanted than the obvious ones."""


def place_merged(
    graph: Hypergraph, deadline: float, rng: np.random.Generator | None = None, within: Ints | None = None
) -> Ints:
    """From scratch, or `within` a known placement: only nodes of one partition are merged, and the search goes on from
    there. With `rng` the merging is random to a degree.
    """
    clusters = None if time.perf_counter() >= deadline else merge_similar(graph, rng, within)
    if clusters is None:
        if within is not None:
            return search(graph, within, deadline)
        return min((search(graph, start, deadline) for start in _starts(graph)), key=graph.cost)
    coarse = graph.contract(clusters)
    if within is None:
        parts = place_merged(coarse, deadline, rng)[clusters]
    else:
        on_clusters = np.zeros(coarse.node_count, dtype=np.int64)
        on_clusters[clusters] = within
        parts = place_merged(coarse, deadline, rng, on_clusters)[clusters]
    return search(graph, parts, deadline, FINE_LIMITS)


def _starts(graph: Hypergraph) -> Iterator[Ints]:
    yield balanced_start(graph)
    rng = np.random.default_rng(graph.node_count)
    for _ in range(RANDOM_STARTS):
        yield rng.integers(graph.partition_count, size=graph.node_count)


def common_seconds(graph: Hypergraph) -> Floats:
    """Per pair of nodes the weight of edges that have both; what an edge has is divided among a node's partners."""
    count = graph.node_count
    sizes = (graph.edges != ABSENT).sum(axis=1)
    weights = graph.weights / np.maximum(sizes - 1, 1)
    keys, values = [], []
    for one, other in combinations(range(graph.edges.shape[1]), 2):
        has_both = graph.edges[:, one] != ABSENT
        keys.append(graph.edges[has_both, one] * count + graph.edges[has_both, other])
        values.append(weights[has_both])
    table = np.bincount(np.concatenate(keys), np.concatenate(values), minlength=count * count)
    pairs = table.reshape(count, count)
    return np.asarray(pairs + pairs.T, dtype=np.float64)


def merge_similar(graph: Hypergraph, rng: np.random.Generator | None = None, within: Ints | None = None) -> Ints | None:
    """A cluster per node, one per partition at least; None if nothing is worth merging."""
    count, least_count = graph.node_count, CLUSTERS_PER_PARTITION * graph.partition_count
    if count <= least_count or count > MOST_NODES or not len(graph.edges):
        return None
    ones, others, values = _nearest(graph, rng, within)
    loads = graph.loads.sum(axis=0)
    cap = loads.sum() / least_count
    head = np.arange(count)
    is_free = np.ones(count, dtype=bool)
    left = count
    for at in np.lexsort((others, ones, -values)):
        one, other = ones[at], others[at]
        if values[at] <= 0 or left == least_count:
            break
        if is_free[one] and is_free[other] and loads[one] + loads[other] <= cap:
            is_free[one] = is_free[other] = False
            head[max(one, other)] = min(one, other)
            left -= 1
    if left == count:
        return None
    return np.unique(head, return_inverse=True)[1].astype(np.int64)


def _nearest(graph: Hypergraph, rng: np.random.Generator | None, within: Ints | None) -> tuple[Ints, Ints, Floats]:
    """Pairs of nodes and how alike they are: the cosine of the rows that they have."""
    common = common_seconds(graph)
    sums = np.sqrt(np.maximum(common.sum(axis=1), np.finfo(float).tiny))
    likeness = common / sums / sums[:, None]
    if rng is not None:
        likeness *= rng.uniform(1 - NOISE, 1 + NOISE, likeness.shape)
    if within is not None:
        likeness[within[:, None] != within] = 0.0
    partners = min(PARTNERS, graph.node_count - 1)
    others = np.argpartition(-likeness, partners - 1, axis=1)[:, :partners].ravel()
    ones = np.repeat(np.arange(graph.node_count), partners)
    return ones, others, likeness[ones, others]
