"""The planner's pipeline: live queries -> probe trees -> stores -> one shared plan."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.optimizer.decide import Decisions
from dovetail.optimizer.derive_stores import IntermediateFolds, derive_stores
from dovetail.optimizer.live_query import LiveQuery
from dovetail.optimizer.materialize import fold, maintaining_query
from dovetail.optimizer.plan_fills import filling_query, plan_fill
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
    decisions: Decisions | None = None,
) -> SharedPlan:
    """A pure function of its arguments: a replayed batch plans the same."""
    decisions = decisions or Decisions()
    query_by_id = {live.id: live for live in queries}
    maintaining = tuple(maintaining_query(kept, query_by_id, streams) for kept in decisions.intermediates)
    folds: dict[tuple[str, str], LiveQuery] = {}
    later_folds: dict[tuple[str, str], LiveQuery] = {}
    folds_by_store: dict[str, IntermediateFolds] = {}
    for kept in decisions.intermediates:
        folded = {use: fold(query_by_id[use.query], use.aliases, kept.intermediate, streams) for use in kept.uses}
        folds |= {(use.query, start): form for use, form in folded.items() for start in use.starts}
        later_folds |= {(use.query, start): form for use, form in folded.items() for start in use.wanted_starts}
        folds_by_store[kept.intermediate.id] = IntermediateFolds(kept.intermediate, tuple(folded.values()))
    running = (*queries, *maintaining)
    trees = share_probe_prefixes(running, stats or StatsCatalog(), folds, decisions.orders)
    # Stores are indexed for what will probe them, too: an index is cheap on arrival and dear afterwards.
    later = share_probe_prefixes(running, stats or StatsCatalog(), later_folds, decisions.orders) if later_folds else ()
    filled = [(query, kept.fill) for query, kept in zip(maintaining, decisions.intermediates, strict=True) if kept.fill]
    fills = tuple(plan_fill(query, source, stats or StatsCatalog(), decisions.orders) for query, source in filled)
    filling = tuple(filling_query(query) for query, _ in filled)
    return SharedPlan(
        epoch=epoch,
        stores=derive_stores(running, (*trees, *later), streams, folds_by_store),
        trees=trees,
        placement=placement,
        complete_from_by_query=tuple((live.id, live.complete_from) for live in (*running, *filling)),
        fills=fills,
    )
