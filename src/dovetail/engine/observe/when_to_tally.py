"""Of which batches figures are tallied: of every one, or of some where that is much work.

Hundreds of queries have thousands of figures. To fold them all, and to ask of each whether it moved, costs the driver
as much for a small batch as for a large one; so the more there are, the fewer batches are asked. In between planners
see the same statistics as before, and have nothing to do. What is new in a process is learned at once. Keys and samples
are few, and folded with every batch: how many keys there are is not seen in some batches.
"""

from __future__ import annotations

from dovetail.stats.observed import ObservedStats

FIGURES_A_BATCH = 500
FEWEST = 8
"""At least one of so many batches is asked."""
LEARNING_BATCHES = 8


def is_tallied(observed: ObservedStats, batch: int) -> bool:
    """Whether the figures of batch `batch` are: decided by counts alone, so that it can be foreseen."""
    every = min(FEWEST, 1 + len(observed.tallies) // FIGURES_A_BATCH)
    return observed.tallied < LEARNING_BATCHES or batch % every == 0
