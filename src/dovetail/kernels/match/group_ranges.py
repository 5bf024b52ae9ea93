"""Which ranges over one order are searched for together, as the range from their least to their greatest value.

Queries whose ranges hardly differ (`a.v < b.v + 5`, `a.v < b.v + 6`) share a search and what it finds. Where they lie
apart, for they come of different columns of the probing row, what lies between them is nearly all of the index, and
each is searched for by itself.

    ranges of a row        |--|   |---|                    |--|
    searched              |------------|                  |----|
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dovetail.kernels.match.order_values import RowRanges

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
SAMPLED_ROWS = 48
A_SEARCH = 16.0
"""Takes as long as walking over so many entries."""
MOST_GROUPS = 16


@dataclass(frozen=True)
class Runs:
    """The entries of some probing rows: those of row `rows[i]` lie from `first[i]` to below `last[i]` of `orders`."""

    rows: I64
    first: I64
    last: I64
    orders: I64

    @staticmethod
    def sampled(codes: U64, entry_codes: U64, orders: I64, *, has_keys: bool) -> Runs:
        """Of rows spread over all that probe; without keys any entry may be theirs."""
        rows = np.unique(np.linspace(0, len(codes) - 1, min(len(codes), SAMPLED_ROWS)).astype(np.int64))
        if has_keys:
            own = codes[rows]
            first, last = np.searchsorted(entry_codes, own), np.searchsorted(entry_codes, own, side="right")
        else:
            first, last = np.zeros(len(rows), np.int64), np.full(len(rows), len(orders))
        return Runs(rows, first, last, orders)

    def cost(self, lower: I64, upper: I64) -> float:
        """What a row's search and walk take, in entries."""
        walked = 0
        for i in range(len(self.rows)):
            if lower[i] <= upper[i]:
                run = self.orders[self.first[i] : self.last[i]]
                walked += int(np.searchsorted(run, upper[i], side="right") - np.searchsorted(run, lower[i]))
        return A_SEARCH + walked / max(len(self.rows), 1)


@dataclass(frozen=True)
class _Group:
    places: tuple[int, ...]
    lower: I64
    upper: I64
    cost: float

    def with_place(self, place: int, lower: I64, upper: I64, runs: Runs) -> _Group:
        none, other_none = self.lower > self.upper, lower > upper
        lowest = np.where(none, lower, np.where(other_none, self.lower, np.minimum(self.lower, lower)))
        highest = np.where(none, upper, np.where(other_none, self.upper, np.maximum(self.upper, upper)))
        return _Group((*self.places, place), lowest, highest, runs.cost(lowest, highest))


def group_ranges(ranges: Sequence[RowRanges], runs: Runs) -> list[tuple[int, ...]]:
    """Groups of ranges by their places: one joins the group to which it adds least, unless it costs less alone."""
    groups: list[_Group] = []
    for place, each in enumerate(ranges):
        lower, upper = each.lower[runs.rows], each.upper[runs.rows]
        alone = _Group((place,), lower, upper, runs.cost(lower, upper))
        wider = [group.with_place(place, lower, upper, runs) for group in groups]
        extra = [after.cost - before.cost for after, before in zip(wider, groups, strict=True)]
        least = int(np.argmin(extra)) if extra else None
        if least is not None and (extra[least] <= alone.cost or len(groups) == MOST_GROUPS):
            groups[least] = wider[least]
        else:
            groups.append(alone)
    return [group.places for group in groups]
