"""What a query would take next to those that run: no solver, nothing of the other queries but the plan they share.

greedy probe orders of the query alone -> its stores, compared with the kept ones -> what is added
                                       -> its steps, found in the running trees   -> with how many it shares each
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from dovetail.engine.admission.estimate_storage import StoreWorld, added_storage
from dovetail.engine.admission.kept_volume import lifetime_of
from dovetail.engine.admission.query_estimate import QueryEstimate
from dovetail.optimizer.joint.decide_jointly import JointOptions, joint_view
from dovetail.optimizer.passes.derive_stores import derive_stores, growing_streams
from dovetail.optimizer.passes.plan_groups import joining_query
from dovetail.optimizer.passes.share_probe_prefixes import Orders, share_probe_prefixes, taken_orders
from dovetail.optimizer.pricing.cost_basis import cost_basis, weakest
from dovetail.plan.live_query import LiveQuery, as_row, store_of
from dovetail.plan.probe_tree import ProbeNode, ProbeTree
from dovetail.plan.store_plan import StorePlan
from dovetail.query.growing_groups import growing_groups
from dovetail.query.stream import Stream
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.estimate import Estimate, Origin
from dovetail.stats.unit_costs import UnitCosts

MODEL_ERROR = 0.5
"""Of costs and results that rest on counted figures: predicates count as independent, keys as evenly frequent."""


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
    orders = taken_orders((live,), world.stats)
    trees = share_probe_prefixes((live,), world.stats, None, orders)
    stores = derive_stores((live,), trees, world.streams)
    rows, size = added_storage(stores, world)
    figures = _Figures(live, stores, orders, running)
    steps = figures.steps_by_start
    shares = [
        figures.model.step_cost(step) / (1 + sharers)
        for start, path in enumerate(steps)
        for step, sharers in zip(path, _sharers(trees, running.trees, live, start), strict=True)
    ]
    join = figures.join
    results = math.fsum(figures.model.new_rows(start, join) for start in join.relations)
    return QueryEstimate(
        added_rows=rows,
        added_bytes=size,
        growing_streams=tuple(growing_streams(live)),
        growing_groups=growing_groups(user.query),
        results_a_batch=figures.estimate(results),
        alone_ms=figures.estimate(1e3 * math.fsum(figures.model.step_cost(step) for path in steps for step in path)),
        share_ms=figures.estimate(1e3 * math.fsum(shares)),
        answers_ms=figures.estimate(1e3 * figures.model.answer_cost(join)),
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


class _Figures:
    """The cost model of the query alone, and how far it can be trusted."""

    def __init__(self, live: LiveQuery, stores: Iterable[StorePlan], orders: Orders, running: Running) -> None:
        stats = running.world.stats
        rows, origins = _live_rows(stores, stats, running.world.streams)
        as_long_as_needed = replace(stats, rows_in_window={**rows, **stats.rows_in_window})
        options = JointOptions(0.0, may_materialize=False, units=running.units, partitions=running.partitions)
        view = joint_view((live,), as_long_as_needed, options)
        basis = cost_basis(view.queries, stats)
        self.model = view.cost_model
        self.join = view.queries[0].graph.join
        self.steps_by_start = [path.steps for path in view.plan_of(orders).queries[0].paths]
        self._origin = weakest((*basis.batch.values(), *basis.predicate.values(), *origins))

    def estimate(self, value: float) -> Estimate:
        if self._origin is Origin.ASSUMED:
            return Estimate(value, Origin.ASSUMED)
        return Estimate(value, Origin.ESTIMATED, MODEL_ERROR)


def _live_rows(
    stores: Iterable[StorePlan], stats: StatsCatalog, streams: Mapping[str, Stream]
) -> tuple[dict[str, float], list[Origin]]:
    """Rows of each stream that live as long as the query needs them; stores of others may keep them shorter."""
    rows: dict[str, float] = {}
    origins: list[Origin] = []
    for store in stores:
        rate = stats.rows_per_s(store.stream)
        lifetime_s = lifetime_of(store.retention, streams)
        if rate is None or math.isinf(lifetime_s):
            origins.append(stats.rows(store.stream).origin)
        else:
            rows[store.stream] = max(rate.value * lifetime_s, rows.get(store.stream, 0.0))
            origins.append(rate.origin)
    return rows, origins


def _sharers(own: Iterable[ProbeTree], running: Iterable[ProbeTree], live: LiveQuery, start: int) -> Iterator[int]:
    """Along the query's path from its relation number `start`: how many others take each step already."""
    for tree in own:
        nodes: tuple[ProbeNode, ...] = tree.children
        others = next((each.children for each in running if each.start == tree.start), ())
        while node := next((node for node in nodes if any(leg.start == start for leg in node.legs)), None):
            same = next((other for other in others if other.step == node.step), None)
            yield 0 if same is None else len({leg.query for leg in same.legs} - {live.id})
            nodes, others = node.children, () if same is None else same.children
