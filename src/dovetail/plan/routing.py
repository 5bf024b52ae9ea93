"""How the rows of an index are spread over partitions (B2, A7): each is worked on by one of them, wherever it lies.

    hash       partition = owner of the row's key group; a probe goes to one partition
    ContRand   the partitions form `subgroups` groups of equal size; the key group says which group, and inside it rows
               are dealt out one by one; a probe goes to all partitions of the group
    random     one group of all partitions: right for any condition, whatever the skew; a probe goes to all
    dealt      for indexes without keys: probing rows are dealt out to all partitions, and each sees all stored rows

A few frequent keys may be split on top of that, each on the side that has more of its rows:

    split_stored    stored rows with these codes are dealt out to all partitions, and a probe goes to all
    split_probing   probing rows with these codes are dealt out to all partitions, and each sees all stored rows

A row is stored once in any case, and which partition works on it is decided when it is read: so routing may change
with every batch, and moves nothing. Every pair of a probing and a stored row is looked at in exactly one partition.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Routing:
    """`subgroups` of None is hash: as many groups as there are partitions."""

    subgroups: int | None = None
    split_stored: tuple[int, ...] = ()
    split_probing: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.subgroups is not None and self.subgroups < 1:
            raise ValueError("there is at least one subgroup")
        for codes in (self.split_stored, self.split_probing):
            if list(codes) != sorted(set(codes)):
                raise ValueError("split codes ascend")
        if set(self.split_stored) & set(self.split_probing):
            raise ValueError("a code is split on one side")
        if self.subgroups == 1 and (self.split_stored or self.split_probing):
            raise ValueError("where all rows are dealt out no code is special")

    @property
    def split_codes(self) -> frozenset[int]:
        return frozenset((*self.split_stored, *self.split_probing))

    def subgroup_of(self, partition: int, partition_count: int) -> int:
        """Neighbouring partitions are together; there are never more groups than partitions."""
        return partition * min(self.subgroups or partition_count, partition_count) // partition_count

    def members_with(self, partition: int, partition_count: int) -> tuple[int, ...]:
        """The partitions of the same subgroup, itself among them."""
        own = self.subgroup_of(partition, partition_count)
        return tuple(each for each in range(partition_count) if self.subgroup_of(each, partition_count) == own)

    def __str__(self) -> str:
        if self.subgroups == 1:
            return "random"
        if self == DEALT:
            return "probing rows dealt out"
        text = "hash" if self.subgroups is None else f"ContRand, {self.subgroups} subgroups"
        parts = [f"{len(self.split_stored)} with many stored rows"] if self.split_stored else []
        parts += [f"{len(self.split_probing)} with many probing rows"] if self.split_probing else []
        return f"{text}; keys split: {', '.join(parts)}" if parts else text


HASH = Routing()
RANDOM = Routing(subgroups=1)
DEALT = Routing(split_probing=(0,))
"""All rows of an index without keys have the code 0. As any task can read any bucket, probing rows need not visit all
partitions as they do under random routing, and their searches are not repeated in each."""

Routings = tuple[tuple[str, str, Routing], ...]
"""(store, index, routing), where it is not the usual one."""
