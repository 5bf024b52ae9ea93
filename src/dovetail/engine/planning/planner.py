"""From the running queries to the plan of a batch: what is known, what is decided, what of it may be used yet.

statistics (those of the last plan, until enough moved) -> decisions -> settled intermediates -> shared plan
-> its placements -> its routings
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

from dovetail.engine.options import EngineOptions
from dovetail.engine.planning.elastic_units import ElasticUnits
from dovetail.engine.planning.fill_intermediates import FillPolicy, settle_and_fill
from dovetail.engine.planning.joint_planner import JointPlanner
from dovetail.engine.planning.key_group_placer import KeyGroupPlacer
from dovetail.engine.planning.plan_history import PlanChange, PlanHistory
from dovetail.engine.planning.replan_reasons import replan_reasons
from dovetail.engine.state import EngineState
from dovetail.optimizer.decisions import Decide, Decisions, greedy, keep_intermediates
from dovetail.optimizer.passes.choose_factorizations import choose_factorizations
from dovetail.optimizer.passes.choose_placement import PlacementPolicy, even_placements, placement_changes
from dovetail.optimizer.passes.choose_placing_keys import ChoosePlacingKeys, has_uneven_placing, placing_changes
from dovetail.optimizer.passes.choose_routing import (
    ChosenRouting,
    RoutingPolicy,
    choose_routings,
    fixed_routing,
    keep_routings,
    routing_changes,
    unusual,
)
from dovetail.optimizer.passes.plan_groups import plan_groups
from dovetail.optimizer.passes.share_probe_prefixes import Orders
from dovetail.optimizer.pipeline import orders_taken, plan_queries
from dovetail.plan.group_plan import GroupPlan
from dovetail.plan.key_classes import uses_of
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.placement import even_placement
from dovetail.plan.shared_plan import SharedPlan
from dovetail.query.stream import Stream
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.observed import IndexName
from dovetail.stats.unit_costs import UnitCosts


@dataclass(frozen=True)
class Planned:
    """A plan and what it was made of: the same queries, decisions, orders and statistics give the same plan.

    `orders` are all that the plan takes, those included that nobody decided; `routings` those of all indexes.
    `queries` join rows, for their users or for groups; `asked` are the queries as users asked them.
    """

    plan: SharedPlan
    queries: tuple[LiveQuery, ...]
    decisions: Decisions
    stats: StatsCatalog
    orders: Orders
    reasons: tuple[str, ...] = ()
    routings: tuple[ChosenRouting, ...] = ()
    asked: tuple[LiveQuery, ...] = ()


class Planner:
    """Remembers the plan that runs. Not thread-safe: the engine calls it under a lock."""

    def __init__(
        self, options: EngineOptions, units: UnitCosts, decide: Decide | None, fill_policy: FillPolicy
    ) -> None:
        self._options = options
        self._fill_policy = fill_policy
        self.joint = JointPlanner(options, units)
        self._decide = decide
        self._running: Planned | None = None
        self._moved: tuple[str, ...] = ()
        self._grouped: tuple[tuple[LiveQuery, ...], tuple[tuple[LiveQuery, ...], tuple[GroupPlan, ...]]] | None = None
        self.history = PlanHistory()
        self.placer: KeyGroupPlacer | None = None
        if options.places_by_samples:
            self.placer = KeyGroupPlacer(units, in_background=options.tuning.plan_in_background)
        self.elastic: ElasticUnits | None = None

    @property
    def running(self) -> Planned | None:
        """What the last batch of this process ran by."""
        return self._running

    def plan(
        self,
        queries: tuple[LiveQuery, ...],
        streams: Mapping[str, Stream],
        state: EngineState,
        stats: StatsCatalog,
        *,
        is_resumed: bool,
    ) -> tuple[EngineState, Planned]:
        """The plan for batch `state.batch`; a new epoch when it differs from the running one.

        `is_resumed`: nothing ran yet in this process, and the queries are those of the recorded epoch.
        """
        asked, (queries, groups) = queries, self._with_groups(queries)
        now, stats = stats, self._stats_to_plan_by(queries, stats)
        decide = self._decide or self._decide_by_options
        decisions = decide(queries, streams, stats, state.batch)
        settled, state = settle_and_fill(decisions.intermediates, queries, streams, state, now, self._fill_policy)
        decisions = replace(decisions, intermediates=settled)
        running = self._running
        is_known = (
            running is not None
            and (running.asked, running.decisions) == (asked, decisions)
            and running.stats is stats
            and not (self._options.may_place_by_one_key and has_uneven_placing(running.plan, now))
        )
        epoch = state.epoch if is_resumed and state.epoch else state.epoch + 1
        if running is not None and is_known:
            plan, orders = running.plan, running.orders
        else:
            orders = self._orders(queries, streams, stats, decisions)
            plan = plan_queries(
                queries,
                streams,
                even_placement(self._options.partitioning.key_groups, self._options.partitioning.partitions),
                epoch=epoch,
                stats=stats,
                decisions=self._with_placing_keys(decisions, state, now),
                orders=orders,
                groups=groups,
            )
            plan = choose_factorizations(plan) if self._options.tuning.factorize else plan
        plan = self._placed(plan, now, decisions)
        choose = decisions.routing or self._routing_policy
        routings = choose(plan, now, () if running is None else running.routings)
        if running is not None and plan is running.plan and routings == running.routings:
            return state, running
        plan = replace(plan, epoch=epoch, routings=unusual(plan, routings), shipping=self._options.shipping)
        if running is not None and replace(plan, epoch=running.plan.epoch) == running.plan:
            # Other figures, the same plan: nobody needs to hear of it.
            return state, Planned(running.plan, queries, decisions, stats, orders, (), routings, asked)
        reasons: tuple[str, ...] = ()
        if running is not None:
            because = "" if self.elastic is None else self.elastic.because
            differences = _differences(running, plan, asked, decisions, routings, because)
            # What moved is a reason for other trees; a placement or a routing that changes alone has its own.
            reasons = (*differences, *self._why_placed(state.batch), *(() if is_known else self._moved))
        return replace(state, epoch=epoch), Planned(plan, queries, decisions, stats, orders, reasons, routings, asked)

    def _with_placing_keys(self, decisions: Decisions, state: EngineState, stats: StatsCatalog) -> Decisions:
        """Where nobody decided which of several keys places an index, and it matters."""
        if decisions.placing_keys is not None or not self._options.may_place_by_one_key:
            return decisions
        partitions = self._options.partitioning.partitions
        if self._running is not None:
            partitions = self._running.plan.placement.partition_count
        newest: dict[IndexName, int] = {}
        for meta in state.buckets:
            for index, _ in meta.indexes:
                newest[meta.store, index] = max(meta.upper_batch, newest.get((meta.store, index), -1))
        return replace(decisions, placing_keys=ChoosePlacingKeys(partitions, stats, newest))

    def _placed(self, plan: SharedPlan, stats: StatsCatalog, decisions: Decisions) -> SharedPlan:
        """With the placements that its policy chooses; the same record if it has them already."""
        choose = decisions.placement or self._placement_policy
        if self.elastic is not None and decisions.placement is None:
            choose = self.elastic.at_scale(choose)
        placements = choose(plan, stats, None if self._running is None else self._running.plan.placements)
        key_groups = self._options.partitioning.key_groups
        if placements.usual.group_count != key_groups:
            raise ValueError(f"{placements.usual.group_count} key groups are placed of {key_groups}")
        if placements.special:
            placements = placements.only(uses_of(plan))
        return plan if placements == plan.placements else replace(plan, placements=placements)

    def _why_placed(self, batch: int) -> tuple[str, ...]:
        """Why key groups are placed anew from this batch on, if they are."""
        placer = self.placer
        return () if placer is None or placer.placed_in_batch != batch else (placer.because,)

    @property
    def _placement_policy(self) -> PlacementPolicy:
        if self.placer is not None:
            return self.placer
        return even_placements(self._options.partitioning.key_groups, self._options.partitioning.partitions)

    @cached_property
    def _routing_policy(self) -> RoutingPolicy:
        routing = self._options.fixed_routing
        if routing is not None:
            return fixed_routing(routing)
        return choose_routings if self._options.tuning.replan else keep_routings

    def _with_groups(self, queries: tuple[LiveQuery, ...]) -> tuple[tuple[LiveQuery, ...], tuple[GroupPlan, ...]]:
        """The same records as long as the queries are the same: planners remember what they derive from one."""
        if self._grouped is None or self._grouped[0] != queries:
            self._grouped = queries, plan_groups(queries)
        return self._grouped[1]

    def for_preview(self) -> Planner:
        """One that plans as this one would now, and of which this one never hears."""
        other = copy(self)
        other.joint = self.joint.for_preview()
        return other

    def note_committed(self, batch: int, planned: Planned, run_ms: float, rows: int) -> None:
        """The batch ran by this plan, and its results are real."""
        running, self._running = self._running, planned
        self.joint.partitions = planned.plan.placement.partition_count
        if running is not None and running.plan.epoch != planned.plan.epoch:
            expected = self.joint.take_gain()
            self.history.note_change(PlanChange(batch, planned.plan.epoch, planned.reasons, *expected))
            self._moved = ()
        self.history.note_batch(run_ms, rows)

    def _orders(
        self,
        queries: tuple[LiveQuery, ...],
        streams: Mapping[str, Stream],
        stats: StatsCatalog,
        decisions: Decisions,
    ) -> Orders:
        """What is decided comes first, then what runs, as long as nothing else changed than queries: one that is
        created or dropped gives the others no reason to go another way.
        """
        running = self._running
        is_as_before = running is not None and running.stats is stats
        if running is not None and is_as_before and _is_same_but_orders(running.decisions, decisions):
            decisions = replace(decisions, orders={**running.orders, **decisions.orders})
        return orders_taken(queries, streams, stats, decisions)

    def _stats_to_plan_by(self, queries: tuple[LiveQuery, ...], now: StatsCatalog) -> StatsCatalog:
        """The statistics of the last plan, until something moved by so much that another plan may be better."""
        running = self._running
        if running is None:
            return now
        # A join of two has but one order, a single stream none.
        is_fixed = not self._options.tuning.replan or all(len(each.query.relations) <= 2 for each in queries)
        reasons = () if is_fixed else replan_reasons(running.stats, now, queries)
        if not reasons:
            return running.stats
        self._moved = reasons
        return now

    def _decide_by_options(
        self, queries: tuple[LiveQuery, ...], streams: Mapping[str, Stream], stats: StatsCatalog, batch: int
    ) -> Decisions:
        decide = greedy if self._options.planning.optimizer == "greedy" else self.joint
        decisions = decide(queries, streams, stats, batch)
        if self._options.planning.keep_intermediates == "always":
            kept = keep_intermediates(queries, streams, stats, batch)
            decisions = replace(decisions, intermediates=kept.intermediates)
        return decisions


def _is_same_but_orders(one: Decisions, other: Decisions) -> bool:
    return (one.intermediates, one.rank_order) == (other.intermediates, other.rank_order)


def _differences(
    running: Planned,
    plan: SharedPlan,
    queries: tuple[LiveQuery, ...],
    decisions: Decisions,
    routings: tuple[ChosenRouting, ...],
    because: str,
) -> list[str]:
    """`because`: why there is the number of partitions that there is."""
    before, now = ({live.id: live.name for live in each} for each in (running.asked, queries))
    reasons = [f"query {now[query]} was created" for query in now if query not in before]
    reasons += [f"query {before[query]} ended" for query in before if query not in now]
    kept_before, kept_now = ({each.intermediate.id for each in d.intermediates} for d in (running.decisions, decisions))
    reasons += [f"{store} is kept" for store in sorted(kept_now - kept_before)]
    reasons += [f"{store} is no longer kept" for store in sorted(kept_before - kept_now)]
    ready_before, ready_now = (_ready(each) for each in (running.decisions, decisions))
    reasons += [
        f"new {start} of {now.get(query, query)} may probe {store}"
        for store, query, start in sorted(ready_now - ready_before)
    ]
    reasons += placing_changes(running.plan, plan)
    reasons += placement_changes(running.plan.placements, plan.placements, uses_of(running.plan), because)
    return reasons + routing_changes(running.routings, routings)


def _ready(decisions: Decisions) -> set[tuple[str, str, str]]:
    return {
        (kept.intermediate.id, use.query, start)
        for kept in decisions.intermediates
        for use in kept.uses
        for start in use.starts
    }
