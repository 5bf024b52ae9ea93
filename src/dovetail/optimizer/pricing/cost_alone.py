"""What a query would cost if it were the only one: the best plan for it alone, or its part of the shared plan if the
solver's small budget finds nothing better.

Selections count as its own then: stores and steps hold what it wants itself, not what any query wants.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from dovetail.optimizer.joint.decide_jointly import JointOptions, joint_view, wanted_ranks
from dovetail.optimizer.joint.plan import JointPlan, ProbePath
from dovetail.optimizer.joint.problem import SubJoin
from dovetail.optimizer.joint.solvers.flow import build_flow
from dovetail.optimizer.joint.solvers.greedy import choose_greedily
from dovetail.optimizer.joint.solvers.solve import solve
from dovetail.optimizer.joint.view import JointView, NamedQuery
from dovetail.optimizer.pricing.share_costs import plan_cost
from dovetail.stats.catalog import StatsCatalog

BUDGET_S = 0.5
"""A plan for one query is mostly proven best within a twentieth of it, and then it is the same every time."""


def costs_alone(
    view: JointView, plan: JointPlan, stats: StatsCatalog, only_for: Collection[str] | None = None
) -> dict[str, float]:
    """Seconds a batch by query, for all queries of the view or some."""
    asked = [named for named in view.queries if only_for is None or named.live.id in only_for]
    options = JointOptions(BUDGET_S, view.may_materialize, view.storage_budget, view.cost_model.units)
    return {named.live.id: _cost_alone(named, part_of(plan, named.live.id), stats, options) for named in asked}


def _cost_alone(named: NamedQuery, part: JointPlan, stats: StatsCatalog, options: JointOptions) -> float:
    alone = joint_view((named.live,), stats, options)
    part = _in_names_of(alone.queries[0], named, part)
    as_now = plan_cost(alone.cost_model, part)
    can_keep = options.may_materialize and named.graph.may_materialize and named.graph.intermediates
    rank_order = wanted_ranks(alone, part, options) if can_keep else ()
    if rank_order:
        return min(as_now, solve(alone.problem(rank_order), options.budget_s, part).plan.cost)
    # Without intermediates starts have no step in common, so the cheapest path of each is the best plan.
    return min(as_now, choose_greedily(build_flow(alone.problem(()))).total())


def _in_names_of(alone: NamedQuery, shared: NamedQuery, part: JointPlan) -> JointPlan:
    """The part with predicates as they are called where there are no other queries, and so no groups of them."""
    name = {shared.predicate(each): alone.predicate(each) for each in shared.live.query.equalities}
    name |= {weak: weak for weak in shared.weak_predicates}

    def join(each: SubJoin) -> SubJoin:
        return SubJoin(each.relations, tuple(sorted(name[predicate] for predicate in each.predicates)))

    def paths(found: Iterable[ProbePath]) -> tuple[ProbePath, ...]:
        return tuple(
            ProbePath(
                path.start,
                tuple(
                    replace(step, joined=join(step.joined), target=join(step.target), result=join(step.result))
                    for step in path.steps
                ),
            )
            for path in found
        )

    return replace(
        part,
        queries=tuple(replace(each, paths=paths(each.paths)) for each in part.queries),
        intermediates=tuple(
            replace(each, join=join(each.join), paths=paths(each.paths)) for each in part.intermediates
        ),
    )


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
