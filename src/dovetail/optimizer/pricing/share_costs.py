"""What a plan costs, who pays how much of it, and what everybody would pay alone.

    q1: r -> s -> t         step            cost   users     q1      q2
    q2: r -> s              r: r -> s       6 ms   q1, q2    3 ms    3 ms
                            r: r+s -> t     4 ms   q1        4 ms
    total 10 ms                             share            7 ms    3 ms

Every step is paid once, in equal parts by the queries that take it: on their own paths, or because they use an
intermediate whose upkeep takes it. A share may exceed what the query would pay alone: a step that is shared with a
query which wants more rows is a larger step.

Steps of different query groups are different for the optimizer, and run as one all the same if they look up the same
store by the same key: the rows of all, and once what a step costs however few rows it has.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from dovetail.core.text_tree import TextTree
from dovetail.optimizer.joint.engine_cost import EngineCost
from dovetail.optimizer.joint.plan import JointPlan, ProbePath, Step
from dovetail.optimizer.joint.problem import SubJoin
from dovetail.optimizer.joint.view import JointView

TOLERANCE = 1e-9
WantedBy = Mapping[SubJoin, Collection[str]]
"""By intermediate the queries that will probe it, whether or not a path of the plan does so yet."""


@dataclass(frozen=True)
class StepCost:
    """A step, those that `run_as_one` with it, and what a batch is expected to bring to them.

    `users` are query ids in order.
    """

    step: Step
    run_as_one: tuple[Step, ...]
    cost_s: float
    probing_rows: float
    found_rows: float
    users: tuple[str, ...]

    @property
    def share_s(self) -> float:
        return self.cost_s / len(self.users)


@dataclass(frozen=True)
class UpkeepCost:
    """What keeping an intermediate costs beyond the steps that maintain it."""

    join: SubJoin
    cost_s: float
    stored_rows: float
    stored_bytes: float
    users: tuple[str, ...]

    @property
    def share_s(self) -> float:
        return self.cost_s / len(self.users)


@dataclass(frozen=True)
class QueryCost:
    """`alone_s` is None where nobody asked for it."""

    query: str
    alone_s: float | None
    share_s: float


@dataclass(frozen=True)
class CostBook:
    """Seconds of work a batch by the cost model, answers left out: these cost the same in every plan."""

    steps: tuple[StepCost, ...]
    upkeep: tuple[UpkeepCost, ...]
    queries: tuple[QueryCost, ...]

    def __post_init__(self) -> None:
        if not all(each.users for each in self.parts):
            raise ValueError("every step and every intermediate is somebody's")
        shares = math.fsum(each.share_s for each in self.queries)
        if not math.isclose(shares, self.total_s, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            raise ValueError(f"the shares add up to {shares}, the plan costs {self.total_s}")

    @property
    def parts(self) -> tuple[StepCost | UpkeepCost, ...]:
        """All that is paid, each once."""
        return (*self.steps, *self.upkeep)

    @cached_property
    def total_s(self) -> float:
        return math.fsum(each.cost_s for each in self.parts)

    @cached_property
    def alone_s(self) -> float | None:
        """All queries one by one, nothing shared."""
        known = [each.alone_s for each in self.queries if each.alone_s is not None]
        return math.fsum(known) if len(known) == len(self.queries) else None

    @property
    def saving_s(self) -> float | None:
        """Negative if sharing costs more than it saves."""
        # Sums in another order differ in their last digits, which is no saving.
        if self.alone_s is None:
            return None
        is_same = math.isclose(self.alone_s, self.total_s, rel_tol=TOLERANCE)
        return 0.0 if is_same else self.alone_s - self.total_s

    @cached_property
    def cost_by_step(self) -> dict[Step, StepCost]:
        return {step: each for each in self.steps for step in (each.step, *each.run_as_one)}

    @cached_property
    def cost_by_query(self) -> dict[str, QueryCost]:
        return {each.query: each for each in self.queries}

    def text_tree(self) -> TextTree:
        steps = map(_step_text, self.steps)
        upkeep = [f"keep {each.join}: {_ms(each.cost_s)}; {', '.join(each.users)}" for each in self.upkeep]
        queries = [f"{each.query}: alone {_ms(each.alone_s)}, share {_ms(each.share_s)}" for each in self.queries]
        return TextTree(
            f"cost {_ms(self.total_s)}, alone {_ms(self.alone_s)}, saving {_ms(self.saving_s)}",
            (
                TextTree("steps", tuple(map(TextTree, steps))),
                *([TextTree("upkeep", tuple(map(TextTree, upkeep)))] if upkeep else []),
                TextTree("queries", tuple(map(TextTree, queries))),
            ),
        )


def share_costs(
    view: JointView,
    plan: JointPlan,
    alone_s_by_query: Mapping[str, float],
    wanted_by: WantedBy | None = None,
    run_as_one: Iterable[Collection[Step]] = (),
) -> CostBook:
    """The plan's cost by step and by query. `wanted_by` is needed while users of an intermediate still wait for it.

    `run_as_one` are steps that the runtime takes together.
    """
    model = view.cost_model
    users_by_join = _users_by_join(plan, wanted_by or {})
    users_by_step: dict[Step, set[str]] = {}
    for each in plan.queries:
        for step in _steps(each.paths):
            users_by_step.setdefault(step, set()).add(each.query)
    for kept in plan.intermediates:
        for step in _steps(kept.paths):
            users_by_step.setdefault(step, set()).update(users_by_join[kept.join])
    steps = tuple(_step_cost(together, users_by_step, model) for together in _together(plan.steps(), run_as_one))
    upkeep = tuple(_upkeep_cost(kept.join, users_by_join[kept.join], model) for kept in plan.intermediates)
    shares: dict[str, list[float]] = {each.query: [] for each in plan.queries}
    parts: tuple[StepCost | UpkeepCost, ...] = (*steps, *upkeep)
    for cost in parts:
        for query in cost.users:
            shares[query].append(cost.share_s)
    queries = tuple(QueryCost(name, alone_s_by_query.get(name), math.fsum(own)) for name, own in shares.items())
    return CostBook(steps, upkeep, queries)


def plan_cost(model: EngineCost, plan: JointPlan) -> float:
    """Every step and every intermediate once."""
    steps = (model.step_cost(step) for step in plan.steps())
    return math.fsum((*steps, *(model.upkeep_cost(kept.join) for kept in plan.intermediates)))


def _users_by_join(plan: JointPlan, wanted_by: WantedBy) -> dict[SubJoin, set[str]]:
    users = {kept.join: set(wanted_by.get(kept.join, ())) for kept in plan.intermediates}
    for each in plan.queries:
        for step in _steps(each.paths):
            if not step.target.is_base:
                users[step.target].add(each.query)
    # Larger ones first: who uses one also uses what its upkeep probes.
    for kept in sorted(plan.intermediates, key=lambda kept: -len(kept.join.relations)):
        for step in _steps(kept.paths):
            if not step.target.is_base:
                users[step.target] |= users[kept.join]
    return users


def _steps(paths: Iterable[ProbePath]) -> list[Step]:
    return [step for path in paths for step in path.steps]


def _together(steps: Iterable[Step], run_as_one: Iterable[Collection[Step]]) -> list[list[Step]]:
    """Each step with those that run with it, however many sets of such steps it is in; in the order of the steps."""
    found = {step: [step] for step in steps}
    for same in run_as_one:
        first, *others = (found[step] for step in same)
        for other in others:
            if other is not first:
                first += other
                found |= dict.fromkeys(other, first)
    return list({id(together): together for together in found.values()}.values())


def _step_cost(together: list[Step], users_by_step: Mapping[Step, set[str]], model: EngineCost) -> StepCost:
    first, *others = together
    users = set().union(*(users_by_step[step] for step in together))
    return StepCost(
        first,
        tuple(others),
        math.fsum(map(model.step_cost, together)) - model.fixed_cost(first) * len(others),
        math.fsum(map(model.probing_rows, together)),
        math.fsum(model.new_rows(step.start, step.result) for step in together),
        tuple(sorted(users)),
    )


def _upkeep_cost(join: SubJoin, users: set[str], model: EngineCost) -> UpkeepCost:
    return UpkeepCost(join, model.upkeep_cost(join), model.stored_rows(join), model.stored(join), tuple(sorted(users)))


def _ms(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"{seconds * 1e3:.6g} ms"


def _step_text(cost: StepCost) -> str:
    keys = ", ".join(map(str, cost.step.crossing))
    rows = f"{cost.probing_rows:.6g} rows find {cost.found_rows:.6g}"
    return f"{cost.step} by {keys}: {_ms(cost.cost_s)}, {rows}; {', '.join(cost.users)}"
