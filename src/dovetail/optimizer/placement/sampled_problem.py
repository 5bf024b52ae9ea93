"""A placement problem as it was sampled: arrays, so that what a placement costs can be measured with every batch.

The definition of that cost is `cost`, which takes the same problem as plain records; solvers take those, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dovetail.optimizer.placement.cost import PlacementCost
from dovetail.optimizer.placement.problem import (
    Cell,
    PartitionByGroup,
    PlacedStream,
    PlacementCosts,
    PlacementProblem,
)
from dovetail.plan.placement import Placement, Placements, UseName
from dovetail.stats.key_group_sample import NO_GROUP, Cells

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SampledStream:
    """Cells of a store and the key class of each of its uses; a `row_weight` of 0: nothing of it is shipped."""

    name: str
    use_classes: tuple[int, ...]
    cells: Cells
    row_weight: float = 1.0

    @cached_property
    def _groups(self) -> I64:
        """By cell and use."""
        return self.cells.groups.T.astype(np.int64)

    @cached_property
    def _is_placed(self) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = self._groups != NO_GROUP
        return found

    def targets(self, partition_by_group: I64) -> I64:
        """By cell and use the partition, `NO_GROUP` where there is none."""
        found = partition_by_group[np.array(self.use_classes)[None, :], np.maximum(self._groups, 0)]
        return np.where(self._is_placed, found, NO_GROUP)

    @property
    def use_rows(self) -> F64:
        """By cell, the rows once for each use that places them."""
        found: F64 = self.cells.rows * self._is_placed.sum(axis=1)
        return found

    @property
    def keyed_rows(self) -> float:
        """Those that some use places; the others go nowhere."""
        return float(self.cells.rows[self._is_placed.any(axis=1)].sum())

    def association(self) -> float:
        """How much the key groups of its uses go together beyond chance: phi squared, of the pair where it is most.

        0 where each use falls on the others by chance, 1 where two halves go together, groups - 1 where every key
        group has one of its own. What chance alone shows in a sample is taken off.
        """
        most = 0.0
        for one in range(len(self.use_classes)):
            for other in range(one + 1, len(self.use_classes)):
                most = max(most, self._phi_squared(one, other))
        return most

    def _phi_squared(self, one: int, other: int) -> float:
        both = self._is_placed[:, one] & self._is_placed[:, other]
        rows = self.cells.rows[both]
        if not len(rows) or not self.cells.sampled:
            return 0.0
        x, y = (_numbered(self._groups[both, place]) for place in (one, other))
        of_x, of_y = np.bincount(x, rows) / rows.sum(), np.bincount(y, rows) / rows.sum()
        found = np.bincount(x * len(of_y) + y, rows, len(of_x) * len(of_y)) / rows.sum()
        expected = np.outer(of_x, of_y).ravel()
        phi_squared = float(np.sum(found**2 / expected)) - 1.0
        by_chance = (len(of_x) - 1) * (len(of_y) - 1) / self.cells.sampled
        return max(phi_squared - by_chance, 0.0)


@dataclass(frozen=True, eq=False)
class SampledProblem:
    """`classes` are the key classes that are placed, in the order of their numbers; `stored_rows` come with a batch."""

    group_count: int
    partition_count: int
    classes: tuple[frozenset[UseName], ...]
    streams: tuple[SampledStream, ...]
    costs: PlacementCosts
    stored_rows: float = 0.0

    @cached_property
    def problem(self) -> PlacementProblem:
        """As solvers take it."""
        streams = tuple(
            PlacedStream(stream.name, stream.use_classes, _cells(stream.cells), stream.row_weight)
            for stream in self.streams
        )
        return PlacementProblem(self.group_count, self.partition_count, len(self.classes), streams, self.costs)

    def cost(self, partition_by_group: PartitionByGroup) -> PlacementCost:
        parts = np.array(partition_by_group, np.int64)
        shipped, weighted, unshared = 0.0, 0.0, 0.0
        loads = np.zeros(self.partition_count)
        slowest = 0.0
        for stream in self.streams:
            targets = stream.targets(parts)
            ordered = np.sort(targets, axis=1)
            is_new = ordered != NO_GROUP
            is_new[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
            copies = float(stream.cells.rows @ is_new.sum(axis=1))
            is_placed = targets != NO_GROUP
            rows = np.broadcast_to(stream.cells.rows[:, None], targets.shape)
            own = np.bincount(targets[is_placed], rows[is_placed], self.partition_count)
            if stream.row_weight:
                shipped += copies
                unshared += float(own.sum())
            weighted += copies * stream.row_weight
            slowest += float(own.max(initial=0.0))
            loads += own
        most = float(loads.max()) if self.costs.load_of == "all streams" else slowest
        return PlacementCost(
            shipped, unshared, tuple(loads.tolist()), self.costs.copy_s * weighted, self.costs.process_s * most
        )

    @cached_property
    def least_s(self) -> float:
        """No placement costs less: each row that has a key shipped once, all partitions equally busy."""
        weighted = sum(stream.keyed_rows * stream.row_weight for stream in self.streams)
        load = sum(float(stream.use_rows.sum()) for stream in self.streams) / self.partition_count
        return self.costs.copy_s * weighted + self.costs.process_s * load

    def partition_by_group(self, placements: Placements) -> PartitionByGroup:
        """The placement of each class; uses of one class that lie apart count as the first of them lies."""
        return tuple(placements.of_use(min(each)).partition_by_group for each in self.classes)

    def placements(self, partition_by_group: PartitionByGroup, usual: Placement) -> Placements:
        by_use: dict[UseName, Placement] = {}
        for uses, owners in zip(self.classes, partition_by_group, strict=True):
            by_use |= dict.fromkeys(uses, Placement(owners, self.partition_count))
        return Placements.of(usual, by_use)

    def associations(self) -> Mapping[str, float]:
        """By store with several uses."""
        return {stream.name: stream.association() for stream in self.streams if len(stream.use_classes) > 1}


def _numbered(groups: I64) -> I64:
    """The key groups that there are, numbered from 0 on."""
    is_there = np.bincount(groups) > 0
    found: I64 = (np.cumsum(is_there) - 1)[groups]
    return found


def _cells(cells: Cells) -> tuple[Cell, ...]:
    return tuple(
        Cell(tuple(None if group == NO_GROUP else group for group in groups), rows)
        for groups, rows in zip(cells.groups.T.tolist(), cells.rows.tolist(), strict=True)
    )
