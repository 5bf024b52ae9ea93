"""One probe of a node: the rows that probe, and what its legs ask of the rows that they meet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.kernels.match.match_pairs import LegBounds, ProbeRows
from dovetail.kernels.match.special_values import NO_LOWER, NO_UPPER
from dovetail.plan.probe_tree import ProbeNode
from dovetail.runtime.probe.partial import Partial
from dovetail.runtime.probe.range_demands import RangePart
from dovetail.runtime.probe.route_entries import EntryChoice
from dovetail.runtime.probe.snapshot import SelectionBits
from dovetail.runtime.report import StepCount

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
    ranges: tuple[RangePart, ...] | None
    count: StepCount


def bounds_of(node: ProbeNode) -> tuple[tuple[int, ...], LegBounds]:
    """The probing rows' members that some leg's bounds speak of, and each leg's bounds against them."""
    bounds = [(place, bound) for place, leg in enumerate(node.legs) for bound in leg.bounds]
    members = tuple(sorted({bound.earlier + bound.later - node.member for _, bound in bounds}))
    lower = np.full((len(node.legs), len(members)), NO_LOWER, np.int64)
    upper = np.full((len(node.legs), len(members)), NO_UPPER, np.int64)
    for place, bound in bounds:
        column = members.index(bound.earlier + bound.later - node.member)
        if bound.later == node.member:
            upper[place, column] = bound.upper_us
        else:
            lower[place, column] = -bound.upper_us
    return members, LegBounds(lower, upper)
