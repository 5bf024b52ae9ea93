"""What can be known by counting: each figure has a name, and a batch adds a tally to it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from dovetail.stats.estimate import Estimate, Origin

NEWEST_WEIGHT = 0.5
"""Share of the newest batch in a folded figure: three batches after a change seven eighths of it show."""


class Kind(Enum):
    """What a figure says; in its text the names of the streams, stores or steps that it speaks of stand in braces."""

    BATCH_ROWS = "rows of {0} a batch"
    ROWS_PER_S = "rows of {0} a second of event time"
    LATE_SHARE = "share of {0} that is late"
    LIVE_ROWS = "rows of {0} that may still find partners"
    STORED_ROWS = "rows stored in {0}"
    SELECTION = "share of {0} that passes {1}"
    STEP = "rows found per row that probes at {0}"
    MATCH = "probability that rows meet by {0}"
    MATCH_SAMPLED = "probability that rows meet by {0}, from samples"
    MATCH_AFTER_JOIN = "probability that partial results meet rows by {0}"


@dataclass(frozen=True)
class Figure:
    kind: Kind
    subject: tuple[str, ...]

    def __hash__(self) -> int:
        # Every batch looks up thousands of them, most of which it has in its hands since the plan was made.
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.kind.name, self.subject))

    def __str__(self) -> str:
        return self.kind.value.format(*self.subject)


@dataclass(frozen=True)
class Tally:
    """`part` of `whole`, e.g. rows that passed of rows tested; a relative error says that it was not just counted."""

    part: float
    whole: float
    relative_error: float = 0.0

    def __post_init__(self) -> None:
        if not (self.part >= 0 and self.whole >= 0 and self.relative_error >= 0):
            raise ValueError(f"a tally is not negative: {self}")

    def __add__(self, other: Tally) -> Tally:
        """Both seen in one batch."""
        part, whole = self.part + other.part, self.whole + other.whole
        return Tally(part, whole, _weighted_error(self, other, 1.0, 1.0))

    def folded(self, newest: Tally) -> Tally:
        """With the newest batch's; one that saw nothing changes nothing.

        Errors of neighbouring batches do not cancel out: samples take the same keys each time.
        """
        if newest.whole == 0:
            return self
        old = 1.0 - NEWEST_WEIGHT
        return Tally(
            self.part * old + newest.part * NEWEST_WEIGHT,
            self.whole * old + newest.whole * NEWEST_WEIGHT,
            _weighted_error(self, newest, old, NEWEST_WEIGHT),
        )

    @property
    def estimate(self) -> Estimate | None:
        """None as long as nothing was seen that could have counted."""
        if self.whole == 0:
            return None
        origin = Origin.ESTIMATED if self.relative_error else Origin.EXACT
        return Estimate(self.part / self.whole, origin, self.relative_error)

    @property
    def noise(self) -> float:
        """How much of a change may be chance: two standard deviations of a count, and the error."""
        return 2.0 / math.sqrt(max(self.part, 1.0)) + self.relative_error


def _weighted_error(a: Tally, b: Tally, a_weight: float, b_weight: float) -> float:
    a_share, b_share = a.whole * a_weight, b.whole * b_weight
    whole = a_share + b_share
    return (a.relative_error * a_share + b.relative_error * b_share) / whole if whole else 0.0
