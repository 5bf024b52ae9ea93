"""What a new placement costs the batch that begins with it, against its neighbours: a third more is the most it may."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

NEIGHBOURS = 3
"""Batches on either side; fewer than that before it, and the session is still learning."""


@dataclass(frozen=True)
class PlacementChange:
    """`usual_s` is the median of its neighbours'; rows are what the batch and its neighbours shipped."""

    batch: int
    seconds: float
    usual_s: float
    shipped_rows: int
    shipped_rows_before: float

    @property
    def lengthened_by(self) -> float:
        """As a share of what a batch usually takes; negative where it took less."""
        return self.seconds / self.usual_s - 1


def placement_changes(progress: Sequence[Mapping[str, Any]]) -> list[PlacementChange]:
    """Of a run's batches in their order, those with which a placement began that was sought while it ran."""
    begun = [each["placement"]["placedInBatch"] for each in progress if "placement" in each]
    places = {number: place for place, number in enumerate(each["batchId"] for each in progress)}
    changed = [places[batch] for batch in dict.fromkeys(begun) if batch in places]
    found = []
    for place in changed:
        before = progress[max(place - NEIGHBOURS, 0) : place]
        near = [*before, *progress[place + 1 : place + 1 + NEIGHBOURS]]
        usual = [each for each in near if places[each["batchId"]] not in changed]
        if len(before) < NEIGHBOURS or not usual:
            continue
        found.append(
            PlacementChange(
                progress[place]["batchId"],
                progress[place]["batchDuration"] / 1e3,
                median(each["batchDuration"] for each in usual) / 1e3,
                progress[place]["shipped"]["rows"],
                median(each["shipped"]["rows"] for each in before),
            )
        )
    return found
