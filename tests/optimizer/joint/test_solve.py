"""An answer at any time, the same one for the same input, and its bound and trace are true."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from benchmarks.data.random_queries import random_problem
from dovetail.core.errors import QueryError
from dovetail.optimizer.joint.problem import Problem
from dovetail.optimizer.joint.solvers.flow import build_flow
from dovetail.optimizer.joint.solvers.greedy import choose_greedily
from dovetail.optimizer.joint.solvers.ilp import (
    find_components,
    reoptimize,
    use_useful_partitionings,
    useful_partitionings,
)
from dovetail.optimizer.joint.solvers.local_search import LocalSearch
from dovetail.optimizer.joint.solvers.neighbourhoods import search_neighbourhoods
from dovetail.optimizer.joint.solvers.solve import solve

PRINT_PLAN = """
from benchmarks.data.random_queries import random_problem
from dovetail.optimizer.joint.solvers.solve import solve
print(solve(random_problem(10, 12, 3, 5, 3), 60.0).plan.text_tree())
"""


@pytest.mark.parametrize("budget_s", [0.0, 0.05])
def test_large_problem_has_a_valid_answer_within_any_budget(budget_s: float) -> None:
    problem = random_problem(30, 15, 5, 1, 4)
    began = time.process_time()
    solution = solve(problem, budget_s)
    # Building the flow, the greedy plan and a running step of the solver cannot be cut short. Seconds of work, not of
    # the clock: a busy machine has more of these.
    assert time.process_time() - began < budget_s + 10.0
    solution.plan.check(problem)
    assert 0 < solution.bound <= solution.plan.cost
    assert 0 <= solution.gap < 1


def test_plan_text_does_not_depend_on_the_hash_seed() -> None:
    texts = {
        subprocess.run(
            [sys.executable, "-c", PRINT_PLAN],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1
    assert texts.pop().startswith("joint plan, cost ")


def test_improvements_only_go_down_and_end_at_the_plan() -> None:
    solution = solve(random_problem(10, 20, 3, 2), 20.0)
    costs = [each.cost for each in solution.improvements]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == pytest.approx(solution.plan.cost)
    assert solution.seconds_within(0.0, solution.plan.cost * (1 + 1e-9)) == solution.improvements[-1].seconds
    assert solution.seconds_within(0.0, solution.plan.cost / 2) is None


def test_local_search_neighbourhoods_and_program_each_keep_or_lower_the_cost() -> None:
    problem = random_problem(12, 8, 4, 3, 2)
    ledger = choose_greedily(build_flow(problem))
    costs = [ledger.plan().cost]
    LocalSearch(ledger, time.perf_counter() + 5).run(shakes=50)
    costs.append(ledger.plan().cost)
    useful = useful_partitionings(ledger.flow)
    use_useful_partitionings(ledger, useful)
    search_neighbourhoods(ledger, useful, time.perf_counter() + 2)
    costs.append(ledger.plan().cost)
    ledger.plan().check(problem)
    assert costs == sorted(costs, reverse=True)
    assert ledger.cost == pytest.approx(costs[-1])


def test_reoptimizing_one_query_leaves_the_others_paths_alone() -> None:
    problem = random_problem(10, 6, 4, 4, 2)
    ledger = choose_greedily(build_flow(problem))
    useful = useful_partitionings(ledger.flow)
    use_useful_partitionings(ledger, useful)
    before = ledger.snapshot()
    own = [number for number, demand in enumerate(ledger.flow.demands) if demand.query == 0]
    reoptimize(ledger, own, useful, time.perf_counter() + 5)
    ledger.plan().check(problem)
    assert ledger.cost <= before.cost
    others = [n for n, demand in enumerate(ledger.flow.demands) if demand.query not in (0, None)]
    assert [ledger.paths[n] for n in others] == [before.paths[n] for n in others]


def test_queries_without_a_common_step_or_choice_are_solved_apart() -> None:
    flow = build_flow(random_problem(100, 10, 3, 1))
    components = find_components(flow, useful_partitionings(flow))
    assert len(components) > 1
    demands = sorted(number for component in components for number in component)
    assert demands == [number for number, demand in enumerate(flow.demands) if demand.query is not None]


def test_no_queries_cost_nothing() -> None:
    empty = Problem((), random_problem(10, 1, 3, 1).cost_model)
    solution = solve(empty, 1.0)
    assert (solution.plan.cost, solution.gap, solution.is_optimal) == (0.0, 0.0, True)


def test_random_queries_are_distinct_connected_and_of_the_size_asked_for() -> None:
    problem = random_problem(10, 100, 3, 7)
    assert len({query.join for query in problem.queries}) == 100
    assert {len(query.join.relations) for query in problem.queries} == {3}
    with pytest.raises(QueryError, match="fewer than"):
        random_problem(4, 500, 3, 1)
