r"""Tree of pairwise optimizations (heuristic 5): two key classes at a time, then two such results at a time.

class 0   class 1   class 2   class 3
     \   /               \   /            each pair placed as if the others were not there
      0+1                 2+3              what lies together stays together: a node per partition
          \             /
           0+1  +  2+3                     so the last step only finds which partition goes with which
"""

from __future__ import annotations

import numpy as np

from dovetail.optimizer.placement.solvers.class_groups import nodes_by_class, pair_up
from dovetail.optimizer.placement.solvers.hypergraph import Hypergraph, Ints
from dovetail.optimizer.placement.solvers.merge_partitions import Place


def place_pair_tree(graph: Hypergraph, place: Place) -> Ints | None:
    """None with fewer than three classes: there is no tree."""
    groups = nodes_by_class(graph)
    if len(groups) < 3:
        return None
    # What lies together: a number per node, equal only within one group.
    together = np.arange(graph.node_count)
    while len(groups) > 1:
        pairs = pair_up(graph, groups)
        for nodes in pairs:
            _, clusters = np.unique(together[nodes], return_inverse=True)
            parts = place(graph.restrict(nodes).contract(clusters))[clusters]
            _, first = np.unique(parts, return_index=True)
            leader = np.zeros(graph.partition_count, dtype=np.int64)
            leader[parts[first]] = nodes[first]
            together[nodes] = leader[parts]
        groups = pairs
    return np.unique(together, return_inverse=True)[1].astype(np.int64)
