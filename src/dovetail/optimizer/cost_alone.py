"""What a query would cost if it were the only one: the best plan for it alone, or its part of the shared plan if the
solver's small budget finds nothing better.

Selections count as its own then: stores and steps hold what it wants itself, not what any query wants.
"""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.optimizer.decide_jointly import JointOptions, decide_jointly, joint_view
from dovetail.optimizer.joint.flow import build_flow
from dovetail.optimizer.joint.greedy import choose_greedily
from dovetail.optimizer.joint.plan import JointPlan, ProbePath
from dovetail.optimizer.joint.problem import SubJoin
from dovetail.optimizer.joint_view import JointView, NamedQuery
from dovetail.optimizer.share_costs import plan_cost
from dovetail.query.stream import Stream
from dovetail.stats.catalog import StatsCatalog

BUDGET_S = 0.5
"""For one query; a plan for so few joins is mostly proven best within a twentieth of it."""
WHOLE_BUDGET_S = 3.0
"""For all queries of a session."""


def costs_alone(
    view: JointView, plan: JointPlan, streams: Mapping[str, Stream], stats: StatsCatalog
) -> dict[str, float]:
    """Seconds a batch by query."""
    budget_s = min(BUDGET_S, WHOLE_BUDGET_S / max(len(view.queries), 1))
    options = JointOptions(budget_s, view.may_materialize, view.storage_budget, view.cost_model.units)
    return {named.live.id: _cost_alone(named, plan, streams, stats, options) for named in view.queries}


def _cost_alone(
    named: NamedQuery, plan: JointPlan, streams: Mapping[str, Stream], stats: StatsCatalog, options: JointOptions
) -> float:
    alone = joint_view((named.live,), stats, options)
    as_now = plan_cost(alone.cost_model, part_of(plan, named.live.id))
    if options.may_materialize and named.graph.may_materialize and named.graph.intermediates:
        return min(as_now, decide_jointly((named.live,), streams, stats, options).cost)
    # Without intermediates starts have no step in common, so the cheapest path of each is the best plan.
    return min(as_now, choose_greedily(build_flow(alone.problem(()))).total())


def part_of(plan: JointPlan, query: str) -> JointPlan:
    """A query's paths and the intermediates they need."""
    own = tuple(each for each in plan.queries if each.query == query)
    kept_by_join = {kept.join: kept for kept in plan.intermediates}
    needed: dict[SubJoin, None] = {}
    waiting: list[ProbePath] = [path for each in own for path in each.paths]
    while waiting:
        for step in waiting.pop().steps:
            if not step.target.is_base and step.target not in needed:
                needed[step.target] = None
                waiting.extend(kept_by_join[step.target].paths)
    return JointPlan(own, tuple(kept_by_join[join] for join in sorted(needed)), (), 0.0)
