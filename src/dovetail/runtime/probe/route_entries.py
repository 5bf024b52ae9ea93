"""Which entries of an index a partition works on, and where partial results go: what routing means to a task (B2, A7).

    part           a partition probes with                 and looks at
    OWN            new rows of its subgroup's key groups   every m-th stored entry of them, of m partitions in the group
    SPLIT_STORED   all new rows with these codes           every n-th stored entry with them, of n partitions
    SPLIT_PROBING  every n-th new row with these codes     all stored entries with them

Hash is a subgroup of one partition: all entries of its key groups. Entries are dealt out by their position in the
sorted index, so that any run of it is spread evenly; partial results, which come in any order, by what they refer to.
All of it follows from the plan and the buckets, so every task finds the same, however often it runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from dovetail.kernels.match.hash_keys import CodeRange, codes_of_groups, group_of_codes
from dovetail.plan.placement import Placement
from dovetail.plan.routing import Routing

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Part(Enum):
    """What becomes of a probing row by its code; see the module's head."""

    OWN = "own"
    SPLIT_STORED = "split stored"
    SPLIT_PROBING = "split probing"


@dataclass(frozen=True)
class Deal:
    """Every `members`-th position, so that member 0, 1, ... together have each position once."""

    member: int = 0
    members: int = 1

    def first(self, lower: int, offset: int) -> int:
        """The first position from `lower` on; `offset` keeps the first member from always being the busiest."""
        return lower + (self.member - offset - lower) % self.members


WHOLE = Deal()


@dataclass(frozen=True)
class RangeEntries:
    """Entries with codes in a range, those of some codes left out or not, dealt out or not."""

    codes: CodeRange
    without: tuple[int, ...] = ()
    deal: Deal = WHOLE

    def positions(self, codes: U64, offset: int) -> slice | I64:
        """Where they are among the ascending codes of an index."""
        found = self.codes.slice_of(codes)
        if self.deal.members > 1:
            return slice(self.deal.first(found.start, offset), found.stop, self.deal.members)
        if not self.without:
            return found
        left_out = np.array(self.without, np.uint64)
        lower, upper = np.searchsorted(codes, left_out), np.searchsorted(codes, left_out, side="right")
        is_kept = np.ones(found.stop - found.start, np.bool_)
        for begin, end in zip(lower.tolist(), upper.tolist(), strict=True):
            is_kept[begin - found.start : end - found.start] = False
        kept: I64 = np.flatnonzero(is_kept) + found.start
        return kept


@dataclass(frozen=True)
class RunEntries:
    """Entries with one of these ascending codes, dealt out or not."""

    codes: tuple[int, ...]
    deal: Deal = WHOLE

    def positions(self, codes: U64, offset: int) -> slice | I64:
        wanted = np.array(self.codes, np.uint64)
        lower, upper = np.searchsorted(codes, wanted), np.searchsorted(codes, wanted, side="right")
        if len(wanted) == 1 and self.deal == WHOLE:
            return slice(int(lower[0]), int(upper[0]))
        return np.concatenate(
            [
                np.arange(self.deal.first(begin, offset), end, self.deal.members)
                for begin, end in zip(lower.tolist(), upper.tolist(), strict=True)
            ]
        )


@dataclass(frozen=True)
class ManyRangeEntries:
    """Entries of several ascending ranges as one piece: what is read of each would be a piece of work of its own."""

    ranges: tuple[RangeEntries, ...]

    def positions(self, codes: U64, offset: int) -> I64:
        found = [each.positions(codes, offset) for each in self.ranges]
        return np.concatenate([np.arange(each.start, each.stop) if isinstance(each, slice) else each for each in found])


EntryChoice = RangeEntries | ManyRangeEntries | RunEntries


class Route:
    """One routing as one partition sees it."""

    def __init__(self, routing: Routing, placement: Placement, partition: int) -> None:
        count = placement.partition_count
        members = routing.members_with(partition, count)
        own = Deal(members.index(partition), len(members))
        ranges = [
            codes_of_groups(lower, upper, placement.group_count) for lower, upper in placement.group_ranges(*members)
        ]
        split = sorted(routing.split_codes)
        self._split_codes = {Part.SPLIT_STORED: routing.split_stored, Part.SPLIT_PROBING: routing.split_probing}
        probing = tuple(
            RangeEntries(codes, tuple(code for code in split if codes.lower <= code < codes.upper)) for codes in ranges
        )
        self._probing: tuple[EntryChoice, ...] = probing if len(probing) < 2 else (ManyRangeEntries(probing),)
        # Entries of other key groups in between, and those with split codes, stay: nobody probes for them there.
        self._stored: list[EntryChoice] = (
            [RangeEntries(CodeRange(ranges[0].lower, ranges[-1].upper), deal=own)] if ranges else []
        )
        self._deal_of_all = Deal(partition, count)
        self.copies = {Part.OWN: len(members), Part.SPLIT_STORED: count, Part.SPLIT_PROBING: 1}
        """In how many partitions the probing rows of a part are at once."""

    @property
    def splits(self) -> bool:
        """Whether some codes are of another part than the rest."""
        return any(self._split_codes.values())

    def probing(self) -> Iterator[tuple[Part, EntryChoice]]:
        """The new rows that this partition probes with."""
        for choice in self._probing:
            yield Part.OWN, choice
        for part, codes in self._split_codes.items():
            if codes:
                yield part, RunEntries(codes, self._deal_of_all if part is Part.SPLIT_PROBING else WHOLE)

    def stored(self, part: Part, probing_codes: U64) -> list[EntryChoice]:
        """The stored entries that the rows of a part, with these codes, look at here."""
        if part is Part.OWN:
            return self._stored
        # What is read is copied: only of keys that somebody asks for, so that it costs no more than the pairs.
        codes = tuple(np.unique(probing_codes).tolist())
        return [RunEntries(codes, self._deal_of_all if part is Part.SPLIT_STORED else WHOLE)]

    def parts_of(self, codes: U64) -> Iterator[tuple[Part, I64 | None]]:
        """Which of the received rows belong to which part; None if all do."""
        if not self.splits:
            yield Part.OWN, None
            return
        is_own = np.ones(len(codes), np.bool_)
        for part, split in self._split_codes.items():
            is_split = np.isin(codes, np.array(split, np.uint64))
            is_own &= ~is_split
            yield part, np.flatnonzero(is_split)
        yield Part.OWN, np.flatnonzero(is_own)


def targets(routing: Routing, placement: Placement, codes: U64, refs: tuple[U64, ...]) -> Iterator[tuple[int, I64]]:
    """The partitions that must see some of these partial results, and which."""
    count = placement.partition_count
    subgroup_by_partition = np.array([routing.subgroup_of(partition, count) for partition in range(count)])
    subgroup_by_group = subgroup_by_partition[np.array(placement.partition_by_group)]
    subgroups = subgroup_by_group[group_of_codes(codes, placement.group_count)]
    is_split_stored = np.isin(codes, np.array(routing.split_stored, np.uint64)) if routing.split_stored else None
    is_split_probing = np.isin(codes, np.array(routing.split_probing, np.uint64)) if routing.split_probing else None
    dealt = _dealt(refs, count) if is_split_probing is not None else None
    for partition in range(count):
        is_here = subgroups == subgroup_by_partition[partition]
        if is_split_stored is not None:
            is_here |= is_split_stored
        if is_split_probing is not None:
            is_here = np.where(is_split_probing, dealt == partition, is_here)
        idx = np.flatnonzero(is_here)
        if len(idx):
            yield partition, idx


def _dealt(refs: tuple[U64, ...], count: int) -> I64:
    """A partition for each partial result, from the rows that it consists of."""
    mixed = np.zeros(len(refs[0]), np.uint64)
    for member in refs:
        mixed = (mixed ^ member) * _GOLDEN
        mixed ^= mixed >> np.uint64(29)
    return ((mixed * _GOLDEN) >> np.uint64(33)).astype(np.int64) % count
