"""One probe of a node: the rows that probe, and what its legs ask of the rows that they meet."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.kernels.match_pairs import LegBounds, ProbeRows
from dovetail.plan.probe_tree import ProbeNode
from dovetail.runtime.partial import Partial
from dovetail.runtime.range_demands import RangeDemands
from dovetail.runtime.report import StepCount
from dovetail.runtime.route_entries import EntryChoice
from dovetail.runtime.snapshot import SelectionBits

BucketEntries = tuple[int, EntryChoice]
"""A bucket by its ordinal, and those of its entries that this partition looks at."""


@dataclass(frozen=True)
class Probe:
    """`rows` are those of `partial` with the legs that want them and the members' times that `bounds` speak of.

    Stored rows are looked for within `ranges`: None where rows are found by their keys alone.
    """

    node: ProbeNode
    partial: Partial
    rows: ProbeRows
    bounds: LegBounds
    selections: SelectionBits
    ranges: RangeDemands | None
    count: StepCount
