"""The planner's pipeline: live queries -> probe trees -> stores -> one shared plan."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.optimizer.derive_stores import derive_stores
from dovetail.optimizer.live_query import LiveQuery
from dovetail.optimizer.share_probe_prefixes import share_probe_prefixes
from dovetail.plan.shared_plan import Placement, SharedPlan
from dovetail.query.stream import Stream
from dovetail.stats.catalog import StatsCatalog


def plan_queries(
    queries: tuple[LiveQuery, ...],
    streams: Mapping[str, Stream],
    placement: Placement,
    *,
    epoch: int,
    stats: StatsCatalog | None = None,
) -> SharedPlan:
    """A pure function of its arguments: a replayed batch plans the same."""
    trees = share_probe_prefixes(queries, stats or StatsCatalog())
    return SharedPlan(
        epoch=epoch,
        stores=derive_stores(queries, trees, streams),
        trees=trees,
        placement=placement,
        complete_from_by_query=tuple((live.id, live.complete_from) for live in queries),
    )
