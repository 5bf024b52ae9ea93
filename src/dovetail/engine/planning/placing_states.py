"""The states of placing key groups: watching -> seeking -> proving -> watching, with what was taken beside.

watching   nothing is under way; a reason to seek leads on
seeking    a search runs, in the background or at once; what it finds is proven, if it is worth it
proving    what was found is held against each batch; taken after so many good ones in a row, dropped after so many bad
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dovetail.engine.planning.background import Background
from dovetail.engine.planning.seek_placement import Found, PlacingRules, Seen
from dovetail.optimizer.placement.cost import PlacementCost
from dovetail.optimizer.placement.problem import PartitionByGroup
from dovetail.optimizer.placement.sampled_problem import SampledProblem
from dovetail.plan.placement import Placements, even_placement


@dataclass(frozen=True)
class PlacementNow:
    """What a batch showed of the placement that it ran by; rows and seconds are of that batch.

    `least_s` is what no placement can do without. `unplaced_rows` have no key, and go anywhere once.
    """

    batch: int
    cost: PlacementCost
    least_s: float
    unplaced_rows: float

    @property
    def expected_rows(self) -> float:
        """That are shipped, every copy."""
        return self.cost.shipped_rows + self.unplaced_rows

    def __str__(self) -> str:
        sent = f"{self.cost.shipped_rows:,.0f} rows shipped, " if self.cost.shipped_rows else ""
        return f"{self.cost.seconds * 1e3:.3g} ms a batch ({sent}slowest over mean {self.cost.imbalance:.2f})"


@dataclass(frozen=True)
class Watching:
    """`seen` is what the next batch is held against, None at first."""

    seen: Seen | None = None


@dataclass(frozen=True)
class Seeking:
    """Since `batch`, for `reason`."""

    seen: Seen
    asking: Background[Found]
    reason: str
    batch: int

    def ended(self, rules: PlacingRules) -> Proving | Watching:
        """Once the search is over."""
        found = self.asking.answer
        if found is None or found.gain <= rules.worth:
            return Watching(self.seen)
        return Proving(self.seen, found.partition_by_group, self.reason, self.batch, gain=found.gain)


@dataclass(frozen=True)
class Proving:
    """A placement that was found for a batch, and how it did since: good batches in a row, bad ones, the last gain."""

    seen: Seen
    partition_by_group: PartitionByGroup
    reason: str
    batch: int
    proven: int = 0
    failed: int = 0
    gain: float = 0.0

    def held_against(
        self, batch: int, newest: SampledProblem, running: PartitionByGroup, rules: PlacingRules
    ) -> Proving | Watching | Taken:
        """None of the batches that it was made from counts: a solver finds much in a sample that is not in the data."""
        if self.batch >= batch:
            return self
        before, after = newest.cost(running), newest.cost(self.partition_by_group)
        gain = 1 - after.seconds / before.seconds if before.seconds else 0.0
        if gain <= rules.worth:
            failed = self.failed + 1
            is_over = failed >= rules.in_a_row
            return Watching(self.seen) if is_over else replace(self, gain=gain, proven=0, failed=failed)
        proven = self.proven + 1
        if proven < rules.in_a_row:
            return replace(self, gain=gain, proven=proven)
        usual = even_placement(newest.group_count, newest.partition_count)
        then, now = (PlacementNow(batch, cost, newest.least_s, 0.0) for cost in (before, after))
        because = f"{self.reason}; {proven} batches in a row another placement cost less, {then} became {now}"
        return Taken(newest.placements(self.partition_by_group, usual), batch + 1, because)


@dataclass(frozen=True)
class Taken:
    """The placements since `batch`, and why. `placements` of None: evenly again, where partitions changed."""

    placements: Placements | None
    batch: int
    because: str


PlacingState = Watching | Seeking | Proving
