"""How the rows of an index are spread over partitions (B2, A7): each is worked on by one of them, wherever it lies.

    hash       partition = owner of the row's key group; a probe goes to one partition
    ContRand   the partitions form `subgroups` equal groups; the code says which group, and inside it rows are dealt
               out one by one; a probe goes to all partitions of the group
    random     one group of all partitions: right for any condition, whatever the skew; a probe goes to all

A row is stored once in any case, and which partition works on it is decided when it is read: so routing may change
with every batch, and moves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Routing:
    """`subgroups` of None is hash. Rows with `hot_codes` are dealt out to all partitions, the others as they are."""

    subgroups: int | None = None
    hot_codes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.subgroups is not None and self.subgroups < 1:
            raise ValueError("there is at least one subgroup")
        if list(self.hot_codes) != sorted(set(self.hot_codes)):
            raise ValueError("hot codes ascend")
        if self.subgroups == 1 and self.hot_codes:
            raise ValueError("where all rows are dealt out no code is special")


HASH = Routing()
RANDOM = Routing(subgroups=1)
