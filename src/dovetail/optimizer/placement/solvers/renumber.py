"""Partitions are alike, so a placement may number them as it likes: here so that as little work as possible moves."""

from __future__ import annotations

import numpy as np

from dovetail.optimizer.placement.solvers.hypergraph import Hypergraph, Ints


def renumber_like(graph: Hypergraph, parts: Ints, before: Ints) -> Ints:
    """The same placement; the partition that has most in common with one from before gets its number, and so on."""
    count = graph.partition_count
    weights = graph.loads.sum(axis=0)
    common = np.bincount(parts * count + before, weights, minlength=count * count).reshape(count, count)
    number = np.full(count, -1, dtype=np.int64)
    is_taken = np.zeros(count, dtype=bool)
    for at in np.argsort(-common, axis=None, kind="stable").tolist():
        new, old = divmod(at, count)
        if number[new] < 0 and not is_taken[old]:
            number[new] = old
            is_taken[old] = True
    return number[parts]
