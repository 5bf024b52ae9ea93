"""How much a search may do: counted, so that it ends at the same point on every machine; a deadline is there beside.

The unit is a node or a tuple that a pass of moves looks at.
"""

from __future__ import annotations

import math
import time

from dovetail.optimizer.placement.solvers.hypergraph import Hypergraph


class Budget:
    """Spent by whoever searches with it. Not thread-safe: what is placed apart has a share of its own."""

    def __init__(self, work: float = math.inf, deadline: float = math.inf) -> None:
        self.work = work
        self.deadline = deadline

    @property
    def is_spent(self) -> bool:
        return self.work <= 0 or time.perf_counter() >= self.deadline

    @property
    def seconds(self) -> float:
        """Until the deadline."""
        return self.deadline - time.perf_counter()

    def spend_pass(self, graph: Hypergraph) -> None:
        """One pass of moves over the graph."""
        self.work -= graph.node_count + len(graph.edges)

    def share(self, part: float) -> Budget:
        """As large as a part of what is left; this one is not less for it."""
        return Budget(self.work * part, self.deadline)
