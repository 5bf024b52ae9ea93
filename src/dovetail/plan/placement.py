"""Which partition works on which key group (S1, D3).

A *use* is the rows of a store by one key: what an index is kept for, or what new rows probe with first. Every use may
have a placement of its own. A placement is a routing table: rows lie in bucket files that any task may read, so another
placement, or another number of partitions, moves nothing and changes no answer. It decides which rows are looked at by
the same task, and with it how many must travel.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from dovetail.plan.store_plan import IndexPlan, index_id

UseName = tuple[str, str]
"""(store id, index id) of a use, the index without an order: rows of one key lie together, however they are sorted."""


def use_of(store_id: str, index: IndexPlan) -> UseName:
    return store_id, index.id if index.order is None else index_id(index.keys, placing=index.placing)


@dataclass(frozen=True)
class Placement:
    """By key group its partition; some of the partitions 0..n-1 may have none."""

    partition_by_group: tuple[int, ...]
    partition_count: int

    def __post_init__(self) -> None:
        count = len(self.partition_by_group)
        if count == 0 or count & (count - 1):
            raise ValueError("the number of key groups is a power of two")
        if self.partition_count < 1:
            raise ValueError("there is at least one partition")
        if not all(0 <= partition < self.partition_count for partition in self.partition_by_group):
            raise ValueError("partitions are numbered 0..n-1")

    @property
    def group_count(self) -> int:
        return len(self.partition_by_group)

    def group_ranges(self, *partitions: int) -> list[tuple[int, int]]:
        """The partitions' key groups as half-open ranges."""
        ranges: list[tuple[int, int]] = []
        for group, owner in enumerate(self.partition_by_group):
            if owner not in partitions:
                continue
            if ranges and ranges[-1][1] == group:
                ranges[-1] = (ranges[-1][0], group + 1)
            else:
                ranges.append((group, group + 1))
        return ranges


ONE_PARTITION = Placement((0,), 1)


def even_placement(group_count: int, partition_count: int) -> Placement:
    """Neighbouring key groups together, equally many everywhere."""
    owners = (group * partition_count // group_count for group in range(group_count))
    return Placement(tuple(owners), partition_count)


def all_in_one(group_count: int) -> Placement:
    """All key groups in one partition."""
    return Placement((0,) * group_count, 1)


@dataclass(frozen=True)
class Placements:
    """The usual placement, and those of the uses that have another: (store id, index id, placement)."""

    usual: Placement
    special: tuple[tuple[str, str, Placement], ...] = ()

    def __post_init__(self) -> None:
        if len(self._special_by_use) != len(self.special):
            raise ValueError("a use has one placement")
        usual = self.usual.group_count, self.usual.partition_count
        for store, index, placement in self.special:
            if (placement.group_count, placement.partition_count) != usual:
                raise ValueError(
                    f"{store}{index} is placed by {placement.group_count} key groups on {placement.partition_count} "
                    f"partitions, where usual are {usual[0]} on {usual[1]}"
                )

    @staticmethod
    def of(usual: Placement, placement_by_use: Mapping[UseName, Placement]) -> Placements:
        """Equal placements are equal records, whoever names the uses, and those that lie as usual too."""
        special = ((*use, placement) for use, placement in placement_by_use.items() if placement != usual)
        return Placements(usual, tuple(sorted(special, key=lambda each: each[:2])))

    def of_use(self, use: UseName) -> Placement:
        return self._special_by_use.get(use, self.usual)

    def only(self, uses: Collection[UseName]) -> Placements:
        """Without the placements of other uses."""
        return Placements.of(self.usual, {use: each for use, each in self._special_by_use.items() if use in uses})

    @property
    def special_uses(self) -> frozenset[UseName]:
        return frozenset(self._special_by_use)

    @cached_property
    def _special_by_use(self) -> dict[UseName, Placement]:
        return {(store, index): placement for store, index, placement in self.special}
