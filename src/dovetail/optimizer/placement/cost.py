"""What a placement costs, straight from the cells: the definition that all solvers are held against.

shipped       a tuple goes once to each partition that any of its uses sends it to          (Eq. 4, 7)
load          a partition works on a tuple once for each use that sends it there            (Eq. 6, 8)
seconds       all that is shipped, and the slowest partition                                (Eq. 9, 10)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dovetail.optimizer.placement.problem import PartitionByGroup, PlacementProblem


@dataclass(frozen=True)
class PlacementCost:
    """`loads`: rows times uses per partition, over all streams. `unshared_rows`: shipped if each use shipped alone."""

    shipped_rows: float
    unshared_rows: float
    loads: tuple[float, ...]
    ship_s: float
    process_s: float

    @property
    def seconds(self) -> float:
        return self.ship_s + self.process_s

    @property
    def imbalance(self) -> float:
        """The slowest partition over the mean; 1 if there is nothing to do."""
        total = math.fsum(self.loads)
        return max(self.loads) * len(self.loads) / total if total else 1.0


def cost(problem: PlacementProblem, partition_by_group: PartitionByGroup) -> PlacementCost:
    problem.check(partition_by_group)
    shipped, weighted = 0.0, 0.0
    loads_by_stream = []
    for stream in problem.streams:
        copies, loads = 0.0, [0.0] * problem.partition_count
        for cell in stream.cells:
            targets = [
                partition_by_group[key_class][group]
                for key_class, group in zip(stream.use_classes, cell.groups, strict=True)
                if group is not None
            ]
            copies += cell.rows * len(set(targets))
            for target in targets:
                loads[target] += cell.rows
        shipped += copies
        weighted += copies * stream.row_weight
        loads_by_stream.append(loads)
    totals = tuple(math.fsum(each) for each in zip(*loads_by_stream, strict=True)) or (0.0,) * problem.partition_count
    costs = problem.costs
    slowest = max(totals) if costs.load_of == "all streams" else math.fsum(map(max, loads_by_stream))
    return PlacementCost(shipped, math.fsum(totals), totals, costs.copy_s * weighted, costs.process_s * slowest)
