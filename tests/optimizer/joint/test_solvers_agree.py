"""Greedy, local search, exact program and trying everything, against each other on small random problems."""

from __future__ import annotations

import time
from typing import Any

import pytest

from dovetail.optimizer.joint.solvers.bound import bound_from_below
from dovetail.optimizer.joint.solvers.flow import build_flow
from dovetail.optimizer.joint.solvers.greedy import choose_greedily
from dovetail.optimizer.joint.solvers.local_search import LocalSearch
from dovetail.optimizer.joint.solvers.solve import solve
from tests.support.oracles.joint import least_cost, small_problem

PROBLEMS_PER_TEST = 25
UNHURRIED_S = 3600.0
"""All of these are solved to the end in a moment."""


def blocks(few: int, many: int) -> list[Any]:
    return [*range(few), *(pytest.param(block, marks=pytest.mark.slow) for block in range(few, many))]


@pytest.mark.parametrize("block", blocks(6, 16))
def test_exact_program_finds_the_least_cost_of_all_plans(block: int) -> None:
    for seed in range(block * PROBLEMS_PER_TEST, (block + 1) * PROBLEMS_PER_TEST):
        problem = small_problem(seed)
        solution = solve(problem, UNHURRIED_S)
        solution.plan.check(problem)
        assert solution.is_optimal, seed
        assert bound_from_below(build_flow(problem)) <= solution.plan.cost * (1 + 1e-9), seed
        assert solution.plan.cost == pytest.approx(least_cost(problem), rel=1e-6, abs=1e-9), seed
        assert solution.bound == pytest.approx(solution.plan.cost, rel=1e-5, abs=1e-9), seed


@pytest.mark.parametrize("block", blocks(3, 8))
def test_each_form_is_a_valid_plan_and_no_worse_than_the_one_before(block: int) -> None:
    for seed in range(1000 + block * PROBLEMS_PER_TEST, 1000 + (block + 1) * PROBLEMS_PER_TEST):
        problem = small_problem(seed)
        ledger = choose_greedily(build_flow(problem))
        greedy = ledger.plan()
        LocalSearch(ledger, time.perf_counter() + UNHURRIED_S).run(shakes=20)
        searched = ledger.plan()
        exact = solve(problem, UNHURRIED_S).plan
        for plan in (greedy, searched, exact):
            plan.check(problem)
        assert searched.cost <= greedy.cost * (1 + 1e-9), seed
        assert exact.cost <= searched.cost * (1 + 1e-6), seed
        assert ledger.cost == pytest.approx(searched.cost), seed
