"""Why another plan may be better now: what moved since the running one was made."""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.optimizer.passes.choose_probe_orders import edge_of
from dovetail.plan.live_query import LiveQuery
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.estimate import Origin
from dovetail.stats.figure import Kind
from dovetail.stats.observed import changed

REPLAN_FACTOR = 2.0
PLANNED_BY = frozenset(
    {Kind.BATCH_ROWS, Kind.LIVE_ROWS, Kind.SELECTION, Kind.MATCH, Kind.MATCH_SAMPLED, Kind.MATCH_AFTER_JOIN}
)
"""What planners look at; the others follow from these or from the plan itself."""


def replan_reasons(planned_by: StatsCatalog, now: StatsCatalog, queries: Iterable[LiveQuery]) -> tuple[str, ...]:
    """One sentence each, sorted; none if the running plan would come out again for all that is known."""
    if not planned_by.observed.tallies:
        # What the first plans could only assume is known after a batch or two.
        return ("the data were counted for the first time",) if now.observed.tallies else ()
    moved = changed(planned_by.observed, now.observed, REPLAN_FACTOR)
    reasons = {str(change) for change in moved if change.figure.kind in PLANNED_BY}
    for edge in {edge_of(live.query, equality) for live in queries for equality in live.query.equalities}:
        before, after = planned_by.match(edge), now.match(edge)
        low, high = sorted((before.value, after.value))
        if before.origin is Origin.ASSUMED and after.origin is not Origin.ASSUMED and high > REPLAN_FACTOR * low:
            reasons.add(f"probability that rows meet by {edge}: {before} became {after}")
    return tuple(sorted(reasons))
