"""What is to be placed: streams whose tuples several uses want at the partitions of their keys.

    purchases, two uses:  by gem pack (class 0)   by user (class 1)
    cell (3, 7), 40 rows: forty tuples of key group 3 by gem pack and of key group 7 by user
    group 3 of class 0 and group 7 of class 1 on one partition: each tuple is shipped once, else twice

A *use* is a stream placed by one key. Uses that probe each other are of one *key class* and are placed alike (Eq. 3),
so a solution has one partition per class and key group (Eq. 1 and 2). SASPAR knows of two uses at a time how many
tuples two key groups share (SharedWith); a cell knows it of all uses of a stream at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from dovetail.core.errors import QueryError

LoadOf = Literal["all streams", "each stream"]
PartitionByGroup = tuple[tuple[int, ...], ...]
"""Per key class the partition of each key group."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Rows with one key group per use; None: the use has no place for them (NULL key, or no query wants them)."""

    groups: tuple[int | None, ...]
    rows: float

    def __post_init__(self) -> None:
        _check_amount("rows of a cell", self.rows)


@dataclass(frozen=True, slots=True)
class PlacedStream:
    """`row_weight`: what shipping one of its rows costs, in rows of usual size."""

    name: str
    use_classes: tuple[int, ...]
    cells: tuple[Cell, ...]
    row_weight: float = 1.0

    def __post_init__(self) -> None:
        _check_amount(f"row weight of {self.name}", self.row_weight)
        for cell in self.cells:
            if len(cell.groups) != len(self.use_classes):
                raise QueryError(
                    f"stream {self.name}: a cell of {len(cell.groups)} key groups for {len(self.use_classes)} uses",
                    hint="give one key group per use, None where the use does not want the rows",
                )


@dataclass(frozen=True, slots=True)
class PlacementCosts:
    """Seconds (Eq. 9). `ship_s`: to send a row to another node; `local_s`: to hand it on within one, which the
    `local_share` of all copies are. `senders` ship at the same time: SASPAR adds up what all ship, as one would.
    `process_s`: what a partition works on a row, for each use that has it there.

    `load_of`: a partition of ours works on all streams in one batch, so a batch waits for the partition with most work
    over all streams; SASPAR adds up the slowest partition of each stream (Eq. 10), as if each had tasks of its own.
    """

    ship_s: float
    process_s: float
    local_s: float = 0.0
    local_share: float = 0.0
    senders: int = 1
    load_of: LoadOf = "all streams"

    def __post_init__(self) -> None:
        for what in ("ship_s", "process_s", "local_s"):
            _check_amount(what, getattr(self, what))
        if not 0 <= self.local_share <= 1:
            raise QueryError(f"a local share is {self.local_share}", hint="give a share, 0 to 1")
        if self.senders < 1:
            raise QueryError(f"{self.senders} senders", hint="give 1 or more")
        if self.load_of not in {"all streams", "each stream"}:
            raise QueryError(f"no load of {self.load_of!r}", hint='give "all streams" or "each stream"')

    @property
    def copy_s(self) -> float:
        """What one copy of a row of usual size adds to a batch."""
        return ((1 - self.local_share) * self.ship_s + self.local_share * self.local_s) / self.senders


@dataclass(frozen=True)
class PlacementProblem:
    group_count: int
    partition_count: int
    class_count: int
    streams: tuple[PlacedStream, ...]
    costs: PlacementCosts

    def __post_init__(self) -> None:
        if min(self.group_count, self.partition_count, self.class_count) < 1:
            raise QueryError(
                f"{self.group_count} key groups of {self.class_count} classes in {self.partition_count} partitions",
                hint="give at least one of each",
            )
        names = [stream.name for stream in self.streams]
        if len(set(names)) < len(names):
            raise QueryError("two streams have one name", hint="give each stream a name of its own")
        for stream in self.streams:
            _check_numbers(f"key classes of {stream.name}", stream.use_classes, self.class_count)
            groups = {group for cell in stream.cells for group in cell.groups if group is not None}
            _check_numbers(f"key groups of {stream.name}", groups, self.group_count)

    def even(self) -> PartitionByGroup:
        """Neighbouring key groups together, equally many everywhere, all classes alike: where nothing is known."""
        of_one = tuple(group * self.partition_count // self.group_count for group in range(self.group_count))
        return (of_one,) * self.class_count

    def check(self, partition_by_group: PartitionByGroup) -> None:
        """Eq. 1 and 2: each key group of each class is on exactly one partition."""
        lengths = [len(each) for each in partition_by_group]
        if lengths != [self.group_count] * self.class_count:
            raise QueryError(
                f"a placement of {lengths} key groups",
                hint=f"give {self.group_count} key groups for each of the {self.class_count} classes",
            )
        for each in partition_by_group:
            _check_numbers("partitions", each, self.partition_count)


def _check_amount(what: str, value: float) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise QueryError(f"{what}: {value}", hint="give a finite number, zero or more")


def _check_numbers(what: str, numbers: Iterable[int], count: int) -> None:
    wrong = [number for number in numbers if not 0 <= number < count]
    if wrong:
        raise QueryError(f"{what}: there is no number {wrong[0]}", hint=f"they are numbered 0 to {count - 1}")
