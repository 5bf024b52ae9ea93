"""A last step whose rows are not built (D4): one side of the join is walked, the other folded.

    walked row   meets   a run of rows of equal key   ->   the row once, how many it meets, and what they sum up to

So the cost follows rows, not results. Which side is walked is decided by what groups are made of: all that tells one
group from another must be said of walked rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from dovetail.query.expression import Expression


class FoldedSide(Enum):
    """The stored rows that the step looks up, or the probing ones with all members so far."""

    STORED = "stored rows"
    PROBING = "probing rows"


@dataclass(frozen=True)
class Factorization:
    """Which side is folded, and the output columns that are values of that side; all others are of walked rows."""

    side: FoldedSide
    folded: tuple[str, ...]


@dataclass(frozen=True)
class WhyBuilt:
    """Why joined rows are built: `because` has a `{}` for each of the `expressions`, which speak of members."""

    because: str
    expressions: tuple[Expression, ...] = ()

    def __str__(self) -> str:
        return self.text(str)

    def text(self, written: Callable[[Expression], str]) -> str:
        return self.because.format(*map(written, self.expressions))

    def also(self, other: WhyBuilt) -> WhyBuilt:
        if other == self:
            return self
        return WhyBuilt(f"{self.because}; {other.because}", (*self.expressions, *other.expressions))
