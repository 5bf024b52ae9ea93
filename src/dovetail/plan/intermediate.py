"""A join of some streams that is kept as a store of its own, so that others probe it in one step (C1, M3).

    (a * b)[0.x=1.y; 1-0<=5s]     rows of a and b with a.x = b.y, b at most 5 s after a; columns 0.x, 0.ts, 1.y ...

It is named by content: queries that need the same join share one, within the loosest of their bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property


def member_column(member: int, column: str) -> str:
    """How a stored row calls a column of one of its members."""
    return f"{member}.{column}"


@dataclass(frozen=True)
class Intermediate:
    """Member k is a row of `streams[k]`; `bounds` are (earlier member, later member, microseconds)."""

    streams: tuple[str, ...]
    equalities: tuple[tuple[str, str], ...]
    bounds: tuple[tuple[int, int, int], ...]
    event_times: tuple[str | None, ...]

    def __post_init__(self) -> None:
        if len(self.streams) < 2 or list(self.streams) != sorted(set(self.streams)):
            raise ValueError(f"an intermediate joins two or more different streams in order, not {self.streams}")
        if len(self.event_times) != len(self.streams) or not self.equalities:
            raise ValueError(f"the join of {self.streams} is not complete")

    def loosened(self, other: Intermediate) -> Intermediate:
        """The same join within the looser of both bounds: it holds the rows of either."""
        uppers = {(earlier, later): upper_us for earlier, later, upper_us in other.bounds}
        bounds = tuple(
            (earlier, later, max(upper_us, uppers[earlier, later]))
            for earlier, later, upper_us in self.bounds
            if (earlier, later) in uppers
        )
        return replace(self, bounds=bounds)

    @cached_property
    def id(self) -> str:
        equalities = ", ".join(f"{a}={b}" for a, b in self.equalities)
        return f"({' * '.join(self.streams)})[{equalities}{'; ' if self.bounds else ''}{self._bounds_text()}]"

    def _bounds_text(self) -> str:
        uppers = {upper_us for _, _, upper_us in self.bounds}
        if len(self.bounds) == len(self.streams) * (len(self.streams) - 1) and len(uppers) == 1:
            return f"within {uppers.pop()}us"
        return ", ".join(f"{later}-{earlier}<={upper_us}us" for earlier, later, upper_us in self.bounds)

    @property
    def time_member(self) -> int | None:
        """The member whose event time is that of the stored row."""
        return next((member for member, name in enumerate(self.event_times) if name is not None), None)

    @property
    def event_time(self) -> str | None:
        member = self.time_member
        return None if member is None else member_column(member, self.event_times[member] or "")
