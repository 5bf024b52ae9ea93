"""All forms together within one time budget: greedy, local search, the exact program; where that does not end soon,
a longer local search, the exact program for some queries at a time, and again for all.

The answer is always a complete plan, whatever the budget; more time makes it better and its bound tighter.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from dovetail.optimizer.joint.plan import JointPlan
from dovetail.optimizer.joint.problem import Problem
from dovetail.optimizer.joint.solvers.bound import bound_from_below
from dovetail.optimizer.joint.solvers.flow import build_flow
from dovetail.optimizer.joint.solvers.greedy import choose_greedily
from dovetail.optimizer.joint.solvers.ilp import (
    IlpAnswer,
    IlpRun,
    plan_runs,
    solve_ilp,
    use_useful_partitionings,
    useful_partitionings,
)
from dovetail.optimizer.joint.solvers.known_plan import ledger_of
from dovetail.optimizer.joint.solvers.local_search import LocalSearch
from dovetail.optimizer.joint.solvers.neighbourhoods import search_neighbourhoods

SMALL = 2_350
"""Columns of the largest run: up to here the exact program is tried at once, since it mostly ends within a second."""
FIRST_SHARE = 0.2
SEARCH_SHARE = 0.2
NEIGHBOURHOOD_SHARE = 0.6
"""Shares of the time left when a form begins."""


@dataclass(frozen=True)
class Improvement:
    """From this time on (since the start), a plan of this cost was at hand."""

    seconds: float
    cost: float


@dataclass(frozen=True)
class Solution:
    """`bound`: no plan costs less. `gap`: how much of the cost might still be saved at most, 0 to 1."""

    plan: JointPlan
    bound: float
    seconds: float
    is_optimal: bool
    variables: int
    improvements: tuple[Improvement, ...]

    @property
    def gap(self) -> float:
        return 0.0 if self.is_optimal or not self.plan.cost else 1 - self.bound / self.plan.cost

    def seconds_within(self, share: float, reference: float) -> float | None:
        """When a plan of at most (1 + share) * reference was first at hand."""
        times = [each.seconds for each in self.improvements if each.cost <= (1 + share) * reference]
        return min(times, default=None)


class _Trace:
    """Keeps only lower costs, each with its time."""

    def __init__(self) -> None:
        self.started_at = time.perf_counter()
        self.improvements: list[Improvement] = []

    def note(self, cost: float) -> None:
        if not self.improvements or cost < self.improvements[-1].cost:
            self.improvements.append(Improvement(time.perf_counter() - self.started_at, cost))


def solve(problem: Problem, budget_s: float, *known: JointPlan) -> Solution:
    """The best plan that can be found in about `budget_s` seconds, never worse than a known one. What is proven
    optimal at once is the same plan for the same problem, always; else the clock decides how far each form gets.
    """
    trace = _Trace()
    deadline = trace.started_at + budget_s
    flow = build_flow(problem)
    ledger = choose_greedily(flow)
    ledger = min((ledger, *(ledger_of(flow, each) for each in known)), key=lambda each: each.cost)
    trace.note(ledger.cost)
    LocalSearch(ledger, deadline, trace.note).descend()
    useful = useful_partitionings(ledger.flow)
    use_useful_partitionings(ledger, useful)
    answer = IlpAnswer(0.0, is_optimal=False, variables=0)
    answer_by_run: dict[IlpRun, IlpAnswer] = {}
    if all(run.columns <= SMALL for run in plan_runs(ledger.flow, useful)):
        answer = solve_ilp(ledger, useful, _share(FIRST_SHARE, deadline), trace.note, answer_by_run)
    bound = max(answer.bound, bound_from_below(ledger.flow))
    if not answer.is_optimal:
        LocalSearch(ledger, _share(SEARCH_SHARE, deadline), trace.note).run()
        use_useful_partitionings(ledger, useful)
        search_neighbourhoods(ledger, useful, _share(NEIGHBOURHOOD_SHARE, deadline), trace.note)
        answer = solve_ilp(ledger, useful, deadline, trace.note, answer_by_run)
    plan = ledger.plan()
    trace.note(plan.cost)
    seconds = time.perf_counter() - trace.started_at
    return Solution(
        plan,
        min(plan.cost, max(bound, answer.bound)),
        seconds,
        answer.is_optimal,
        answer.variables,
        tuple(trace.improvements),
    )


def _share(share: float, deadline: float) -> float:
    now = time.perf_counter()
    return now + share * (deadline - now)
