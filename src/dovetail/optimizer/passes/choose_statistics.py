"""Which statistics a plan is made by: those of the running plan, until so much moved that another may be better."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dovetail.optimizer.draft import Draft, count_of
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


def revise(draft: Draft) -> Draft:
    stats, moved = _chosen(draft)
    is_same = draft.stats is stats and draft.moved == moved
    return draft if is_same else replace(draft, stats=stats, moved=moved)


def tell(draft: Draft) -> str:
    return f"{count_of(len(draft.moved), 'figure')} moved" if draft.moved else "those of the running plan"


def _chosen(draft: Draft) -> tuple[StatsCatalog, tuple[str, ...]]:
    """And what moved, if that is why."""
    if draft.running is None:
        return draft.now, ()
    # A join of two has but one order, a single stream none.
    is_fixed = not draft.settings.may_replan or all(len(each.query.relations) <= 2 for each in draft.queries)
    moved = () if is_fixed else replan_reasons(draft.running.stats, draft.now, draft.queries)
    return (draft.now, moved) if moved else (draft.running.stats, ())


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
