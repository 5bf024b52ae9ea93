"""All queries planned together (C1, C2, C4): orders and intermediates at the least cost that a time budget finds.

    live queries -> joint view -> what would be kept if ranks did not matter -> ranks -> plan under these ranks

The greedy orders are always among the candidates, so no plan is worse than theirs by the cost model.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from dovetail.optimizer.decisions import Decisions
from dovetail.optimizer.joint.choose_ranks import WantedProbe, choose_ranks
from dovetail.optimizer.joint.engine_cost import EngineCost
from dovetail.optimizer.joint.plan import JointPlan
from dovetail.optimizer.joint.problem import SubJoin
from dovetail.optimizer.joint.solvers.flow import build_flow
from dovetail.optimizer.joint.solvers.known_plan import ledger_of, solve_changed
from dovetail.optimizer.joint.solvers.solve import solve
from dovetail.optimizer.joint.statistics import joint_statistics
from dovetail.optimizer.joint.view import JointView, name_queries
from dovetail.optimizer.passes.share_probe_prefixes import greedy_orders
from dovetail.optimizer.query_groups.group_edges import group_edges
from dovetail.plan.live_query import LiveQuery
from dovetail.query.stream import Stream
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.unit_costs import DEFAULT_UNIT_COSTS, UnitCosts

RANK_SHARE = 0.4
"""Of the budget, for the question which ranks to choose."""


STATE_WEIGHT = 0.5
"""State is not free, though time alone would not say so: an intermediate that makes all stores together larger by one
per cent must save half a per cent of the time that greedy orders take."""


@dataclass(frozen=True)
class JointOptions:
    """`storage_budget` is in bytes and covers base stores too."""

    budget_s: float
    may_materialize: bool = True
    storage_budget: float | None = None
    units: UnitCosts = DEFAULT_UNIT_COSTS
    partitions: int = 1


@dataclass(frozen=True)
class JointDecision:
    """Decisions with the plan they stand for; costs are seconds of work a batch by the cost model, answers left out."""

    decisions: Decisions
    plan: JointPlan
    view: JointView
    greedy_cost: float

    @property
    def cost(self) -> float:
        return self.plan.cost


def decide_jointly(
    queries: tuple[LiveQuery, ...],
    streams: Mapping[str, Stream],
    stats: StatsCatalog,
    options: JointOptions,
    known: JointDecision | None = None,
) -> JointDecision:
    """From scratch; `known` is where the search begins if it is any good for these queries."""
    deadline = time.perf_counter() + options.budget_s
    view = joint_view(queries, stats, options)
    greedy = view.plan_of(greedy_orders(queries, stats))
    rank_order = wanted_ranks(view, greedy, options)
    problem = view.problem(rank_order)
    plan = solve(problem, deadline - time.perf_counter(), *_starts(greedy, known)).plan
    if known is not None and known.decisions.rank_order != rank_order:
        under_known_ranks = _as_before(view, known)
        if under_known_ranks.cost <= plan.cost:
            rank_order, plan = known.decisions.rank_order, under_known_ranks
    return _decision(view, plan, greedy, rank_order, streams)


def decide_changed(
    queries: tuple[LiveQuery, ...],
    streams: Mapping[str, Stream],
    stats: StatsCatalog,
    options: JointOptions,
    known: JointDecision,
) -> JointDecision | None:
    """Only what created and dropped queries touch is decided anew (A6); None if that is more than half."""
    view = joint_view(queries, stats, options)
    rank_order = known.decisions.rank_order
    plan = solve_changed(view.problem(rank_order), known.plan, options.budget_s)
    if plan is None:
        return None
    greedy = view.plan_of(greedy_orders(queries, stats))
    decision = _decision(view, plan, greedy, rank_order, streams)
    return decision if decision.cost <= decision.greedy_cost else None


def decide_greedily(
    queries: tuple[LiveQuery, ...], streams: Mapping[str, Stream], stats: StatsCatalog, options: JointOptions
) -> JointDecision:
    """The greedy orders, priced."""
    view = joint_view(queries, stats, options)
    greedy = view.plan_of(greedy_orders(queries, stats))
    return _decision(view, ledger_of(build_flow(view.problem(())), greedy).plan(), greedy, (), streams)


def reprice(
    queries: tuple[LiveQuery, ...],
    streams: Mapping[str, Stream],
    stats: StatsCatalog,
    options: JointOptions,
    known: JointDecision,
) -> JointDecision:
    """What is known for these queries at what it costs now; a query it does not know takes the paths that add least."""
    view = joint_view(queries, stats, options)
    greedy = view.plan_of(greedy_orders(queries, stats))
    return _decision(view, _as_before(view, known), greedy, known.decisions.rank_order, streams)


def _as_before(view: JointView, known: JointDecision) -> JointPlan:
    return ledger_of(build_flow(view.problem(known.decisions.rank_order)), known.plan).plan()


def joint_view(queries: tuple[LiveQuery, ...], stats: StatsCatalog, options: JointOptions) -> JointView:
    """A query over one stream joins nothing: there is nothing to decide for it."""
    queries = tuple(live for live in queries if len(live.query.relations) > 1)
    named = name_queries(queries, group_edges(queries, stats))
    statistics = joint_statistics(named, stats, options.partitions)
    return JointView(named, EngineCost(statistics, options.units), options.may_materialize, options.storage_budget)


def with_price_of_state(queries: tuple[LiveQuery, ...], stats: StatsCatalog, options: JointOptions) -> JointOptions:
    """What a stored byte costs a batch, where the unit costs name no price: see STATE_WEIGHT."""
    if not options.may_materialize or options.units.byte:
        return options
    view = joint_view(queries, stats, replace(options, may_materialize=False))
    problem = view.problem(())
    stored = sum(view.cost_model.stored(SubJoin((relation,))) for relation in problem.relations)
    cost = ledger_of(build_flow(problem), view.plan_of(greedy_orders(queries, stats))).total()
    return replace(options, units=replace(options.units, byte=STATE_WEIGHT * cost / stored if stored else 0.0))


def _starts(greedy: JointPlan, known: JointDecision | None) -> tuple[JointPlan, ...]:
    return (greedy,) if known is None else (greedy, known.plan)


def _decision(
    view: JointView, plan: JointPlan, greedy: JointPlan, rank_order: tuple[str, ...], streams: Mapping[str, Stream]
) -> JointDecision:
    greedy_cost = ledger_of(build_flow(view.problem(())), greedy).total()
    return JointDecision(view.decisions(plan, rank_order, streams), plan, view, greedy_cost)


def wanted_ranks(view: JointView, known: JointPlan, options: JointOptions) -> tuple[str, ...]:
    """The ranks that allow most of what a plan without ranks would keep; () if it would keep nothing."""
    if not view.may_materialize:
        return ()
    free = solve(view.problem(None), RANK_SHARE * options.budget_s, known).plan
    store_by_relation = view.store_by_relation()
    rows = view.rows_by_store()
    wanted = [
        WantedProbe(
            store_by_relation[path.start],
            frozenset(store_by_relation[relation] for relation in step.target.relations),
            rows[store_by_relation[path.start]],
        )
        for paths in free.queries
        for path in paths.paths
        for step in path.steps
        if not step.target.is_base
    ]
    return choose_ranks(rows, [probe for probe in wanted if probe.start not in probe.members], rows) if wanted else ()
