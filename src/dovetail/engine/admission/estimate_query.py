"""What a query would take next to those that run: no solver, nothing of the other queries but the plan they share.

greedy probe orders of the query alone -> its stores, compared with the kept ones -> what is added
                                       -> its steps, found in the running trees   -> with how many it shares each
"""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.engine.admission.estimate_storage import StoreWorld, added_storage
from dovetail.engine.admission.query_estimate import QueryEstimate
from dovetail.optimizer.passes.plan_groups import joining_query
from dovetail.optimizer.pricing.cost_basis import weakest
from dovetail.optimizer.pricing.price_query import MODEL_ERROR, CostedBy, price_query
from dovetail.plan.live_query import LiveQuery, as_row, store_of
from dovetail.plan.needs import growing_streams
from dovetail.plan.probe_tree import ProbeTree
from dovetail.query.growing_groups import growing_groups
from dovetail.stats.estimate import Estimate, Origin
from dovetail.stats.unit_costs import UnitCosts


@dataclass(frozen=True)
class Running:
    """What runs already: the trees of the last committed plan, and its stores with what is known of the data."""

    trees: tuple[ProbeTree, ...]
    world: StoreWorld
    units: UnitCosts
    partitions: int


def estimate_query(user: LiveQuery, running: Running) -> QueryEstimate:
    """Of a query for groups the results are the rows that it joins: groups are fewer, nobody knows by how much."""
    world, live = running.world, joining_query(user)
    if len(live.query.relations) == 1:
        return _estimate_alone(user, live, running)
    price = price_query(live, running.trees, world.streams, world.stats, CostedBy(running.units, running.partitions))
    rows, size = added_storage(price.stores, world)
    return QueryEstimate(
        added_rows=rows,
        added_bytes=size,
        growing_streams=tuple(growing_streams(live)),
        growing_groups=growing_groups(user.query),
        results_a_batch=price.results,
        alone_ms=price.alone_ms,
        share_ms=price.share_ms,
        answers_ms=price.answers_ms,
    )


def _estimate_alone(user: LiveQuery, live: LiveQuery, running: Running) -> QueryEstimate:
    """A query over one stream keeps nothing of it and joins nothing: there are only its answers."""
    stats, units = running.world.stats, running.units
    (relation,) = live.query.relations
    batch = stats.batch_rows(relation.stream) or stats.rows(relation.stream)
    share = stats.selection(as_row(relation.selection, relation.alias), store_of(relation))
    origin = weakest((batch.origin, share.origin))

    def estimate(value: float) -> Estimate:
        return Estimate(value, origin) if origin is Origin.ASSUMED else Estimate(value, Origin.ESTIMATED, MODEL_ERROR)

    rows = batch.value * share.value
    return QueryEstimate(
        added_rows=Estimate(0.0, Origin.EXACT),
        added_bytes=Estimate(0.0, Origin.EXACT),
        growing_streams=(),
        growing_groups=growing_groups(user.query),
        results_a_batch=estimate(rows),
        alone_ms=estimate(0.0),
        share_ms=estimate(0.0),
        answers_ms=estimate(1e3 * (units.built * rows + units.file * running.partitions)),
    )
