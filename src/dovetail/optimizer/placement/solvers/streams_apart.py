"""Streams apart (heuristic 1): what no class and no tuple connects is placed apart, in a thread for each core.

With one load over all streams the parts still meet in the slowest partition; since each part may number its partitions
anew, they are laid over each other so that heavy ones meet light ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from dovetail.optimizer.placement.solvers.class_groups import lay_over
from dovetail.optimizer.placement.solvers.hypergraph import ABSENT, Hypergraph, Ints


def connected_parts(graph: Hypergraph) -> list[Ints]:
    """Nodes by the classes that edges connect."""
    count = int(graph.classes.max(initial=-1)) + 1
    root = np.arange(count)
    classes = np.append(graph.classes, ABSENT)[graph.edges]
    widest = classes[:, -1:] if classes.size else classes
    for one, other in np.unique(_pairs(classes, widest), axis=0).tolist():
        root[root == root[one]] = root[other]
    of_node = root[graph.classes]
    return [np.flatnonzero(of_node == each) for each in np.unique(of_node)]


def _pairs(classes: Ints, last: Ints) -> Ints:
    """Each class of an edge with the class of its last node."""
    rows, columns = np.nonzero(classes != ABSENT)
    return np.stack((classes[rows, columns], last[rows, 0] if len(rows) else rows), axis=1)


def place_apart(graph: Hypergraph, parts: list[Ints], place: Callable[[Hypergraph, Ints], Ints]) -> Ints:
    """`place` gets each part and its nodes. Compiled loops and HiGHS let other threads run."""
    with ThreadPoolExecutor(max_workers=min(len(parts), os.cpu_count() or 1)) as threads:
        placed = list(threads.map(lambda nodes: place(graph.restrict(nodes), nodes), parts))
    return lay_over(graph, parts, placed)
