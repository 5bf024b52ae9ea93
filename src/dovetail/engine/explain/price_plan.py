"""What the plan of the next batch costs by all that is known now, step by step and query by query."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from dovetail.engine.engine import Engine
from dovetail.optimizer.joint.decide_jointly import JointOptions, joint_view
from dovetail.optimizer.joint.plan import Step
from dovetail.optimizer.planned import Planned
from dovetail.optimizer.pricing.cost_alone import costs_alone
from dovetail.optimizer.pricing.cost_basis import CostBasis, cost_basis, weakest
from dovetail.optimizer.pricing.running_plan import RunningPlan, running_plan
from dovetail.optimizer.pricing.share_costs import CostBook, StepCost, share_costs
from dovetail.plan.probe_tree import ProbeNode
from dovetail.plan.shared_plan import SharedPlan
from dovetail.stats.estimate import Origin


@dataclass(frozen=True)
class PricedPlan:
    running: RunningPlan
    book: CostBook
    basis: CostBasis
    alias_by_relation: Mapping[str, Mapping[str, str]]
    """By query, how it calls the relations of its steps."""

    def cost_of(self, node: ProbeNode) -> StepCost:
        # Steps of others at the node run as one with this.
        leg = node.legs[0]
        return self.book.cost_by_step[self.step_of(node, leg.query, leg.start)]

    def step_of(self, node: ProbeNode, query: str, start: int) -> Step:
        """The step that a taker takes there."""
        return self.running.path_by_taker[query, start].steps[node.member - 1]

    def basis_of(self, node: ProbeNode) -> Origin:
        return self.basis_by_step[self.cost_of(node).step]

    @cached_property
    def basis_by_step(self) -> dict[Step, Origin]:
        return {
            each.step: weakest(self.basis.of(step) for step in (each.step, *each.run_as_one))
            for each in self.book.steps
        }

    @cached_property
    def basis_by_query(self) -> dict[str, Origin]:
        origins: dict[str, set[Origin]] = {}
        for each in self.book.steps:
            for query in each.users:
                origins.setdefault(query, set()).add(self.basis_by_step[each.step])
        return {query: weakest(found) for query, found in origins.items()}

    @property
    def whole_basis(self) -> Origin:
        return weakest(self.basis_by_step.values())


def price_plan(engine: Engine, planned: Planned, alone_for: Collection[str] | None = None) -> PricedPlan:
    """By today's statistics, also where an older plan goes on: `planned.stats` only say why it is as it is.

    What queries cost alone takes a solver: `alone_for` names those of interest, None all of them.
    """
    stats, options = engine.head.statistics, engine.options
    keeping = options.planning.keep_intermediates
    may_materialize = keeping == "always" or (keeping == "by cost" and options.planning.optimizer == "joint")
    budget = options.limits.storage_budget
    view = joint_view(planned.queries, stats, JointOptions(0.0, may_materialize, budget, engine.plans.unit_costs))
    running = running_plan(view, planned.decisions, engine.streams.by_name, planned.orders)
    if alone_for is not None:
        readers = [(group.id, {user.query for user in group.users}) for group in planned.plan.groups]
        alone_for = {*alone_for, *(name for name, users in readers if users & set(alone_for))}
    alone = costs_alone(view, running.plan, stats, alone_for)
    book = share_costs(view, running.plan, alone, running.wanted_by, _run_as_one(planned.plan, running))
    aliases = {named.live.id: named.alias_by_relation for named in view.queries}
    return PricedPlan(running, book, cost_basis(view.queries, stats), aliases)


def _run_as_one(plan: SharedPlan, running: RunningPlan) -> list[list[Step]]:
    """The steps of each node that takes several: for the cost model those of different query groups differ."""
    steps = [
        list(dict.fromkeys(running.path_by_taker[leg.query, leg.start].steps[node.member - 1] for leg in node.legs))
        for tree in plan.trees
        for node in tree.walk()
    ]
    return [same for same in steps if len(same) > 1]
