"""Who comes in: every new query is estimated, and refused if it would pass a limit of the session."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from dovetail.engine.admission.estimate_query import Running, estimate_query
from dovetail.engine.admission.estimate_storage import StoreWorld
from dovetail.engine.admission.query_estimate import QueryEstimate, check_estimate
from dovetail.engine.options import EngineOptions
from dovetail.engine.state import EngineState
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.shared_plan import SharedPlan
from dovetail.query.stream import Stream
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.unit_costs import UnitCosts


class Admission:
    """Remembers what was said of queries when they came, as long as this process lives."""

    def __init__(self, options: EngineOptions, units: UnitCosts) -> None:
        self._options = options
        self._units = units
        self._estimate_by_query: dict[str, QueryEstimate] = {}

    def estimate(
        self,
        live: LiveQuery,
        state: EngineState,
        plan: SharedPlan | None,
        stats: StatsCatalog,
        streams: Mapping[str, Stream],
    ) -> QueryEstimate:
        """`plan` is the last batch's; after a restart there is none yet, and nobody knows what queries share."""
        kept = {} if plan is None else {store.id: store for store in plan.stores}
        world = StoreWorld(kept, state.buckets, stats, streams)
        trees = () if plan is None else plan.trees
        partitions = self._options.partitioning.partitions if plan is None else plan.placement.partition_count
        found = estimate_query(live, Running(trees, world, self._units, partitions))
        if plan is None and state.registry.running:
            return replace(found, added_rows=None, added_bytes=None)
        return found

    def check(self, live: LiveQuery, estimate: QueryEstimate) -> None:
        check_estimate(live.name, estimate, self._options.limits)

    def remember(self, query_id: str, estimate: QueryEstimate) -> None:
        self._estimate_by_query[query_id] = estimate

    def remembered(self, query_id: str) -> QueryEstimate | None:
        return self._estimate_by_query.get(query_id)

    def forget_others(self, known: Collection[str]) -> None:
        for query_id in [query_id for query_id in self._estimate_by_query if query_id not in known]:
            del self._estimate_by_query[query_id]
