"""What one query would cost next to those that run: greedy probe orders of the query alone, priced step by step.

its steps, found in the running trees  ->  with how many others it would share each
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from dovetail.optimizer.joint.decide_jointly import JointOptions, joint_view
from dovetail.optimizer.orders import Orders
from dovetail.optimizer.passes.derive_stores import derive_stores
from dovetail.optimizer.passes.share_probe_prefixes import share_probe_prefixes, taken_orders
from dovetail.optimizer.pricing.cost_basis import cost_basis, weakest
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.needs import lifetime_of
from dovetail.plan.probe_tree import ProbeNode, ProbeTree
from dovetail.plan.store_plan import StorePlan
from dovetail.query.stream import Stream
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.estimate import Estimate, Origin
from dovetail.stats.unit_costs import UnitCosts

MODEL_ERROR = 0.5
"""Of costs and results that rest on counted figures: predicates count as independent, keys as evenly frequent."""


@dataclass(frozen=True)
class CostedBy:
    """The machine's unit costs, and over how many partitions work is spread."""

    units: UnitCosts
    partitions: int


@dataclass(frozen=True)
class QueryPrice:
    """A batch's results and milliseconds: of the query alone, of its share, and for writing its answers."""

    stores: tuple[StorePlan, ...]
    results: Estimate
    alone_ms: Estimate
    share_ms: Estimate
    answers_ms: Estimate


def price_query(
    live: LiveQuery,
    running: Iterable[ProbeTree],
    streams: Mapping[str, Stream],
    stats: StatsCatalog,
    costed: CostedBy,
) -> QueryPrice:
    """Of a query that joins; `running` are the trees of the plan that it would come to."""
    orders = taken_orders((live,), stats)
    trees = share_probe_prefixes((live,), stats, None, orders)
    stores = derive_stores((live,), trees, streams)
    figures = _Figures(live, stores, orders, streams, stats, costed)
    steps = figures.steps_by_start
    shares = [
        figures.model.step_cost(step) / (1 + sharers)
        for start, path in enumerate(steps)
        for step, sharers in zip(path, _sharers(trees, tuple(running), live, start), strict=True)
    ]
    join = figures.join
    return QueryPrice(
        stores,
        results=figures.estimate(math.fsum(figures.model.new_rows(start, join) for start in join.relations)),
        alone_ms=figures.estimate(1e3 * math.fsum(figures.model.step_cost(step) for path in steps for step in path)),
        share_ms=figures.estimate(1e3 * math.fsum(shares)),
        answers_ms=figures.estimate(1e3 * figures.model.answer_cost(join)),
    )


class _Figures:
    """The cost model of the query alone, and how far it can be trusted."""

    def __init__(
        self,
        live: LiveQuery,
        stores: Iterable[StorePlan],
        orders: Orders,
        streams: Mapping[str, Stream],
        stats: StatsCatalog,
        costed: CostedBy,
    ) -> None:
        rows, origins = _live_rows(stores, stats, streams)
        as_long_as_needed = replace(stats, rows_in_window={**rows, **stats.rows_in_window})
        options = JointOptions(0.0, may_materialize=False, units=costed.units, partitions=costed.partitions)
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
