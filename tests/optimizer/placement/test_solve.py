"""Whatever heuristics may be taken: a valid placement, never worse than what is known, never below its bound."""

from __future__ import annotations

import time

import numpy as np
import pytest

from benchmarks.partition.random_placements import random_placement_problem
from benchmarks.placement_bound import bound_by_eigenvalues, prove
from dovetail.core.errors import QueryError
from dovetail.optimizer.placement.cost import cost
from dovetail.optimizer.placement.problem import PlacedStream, PlacementCosts, PlacementProblem
from dovetail.optimizer.placement.settings import HEURISTICS, Heuristic, Settings
from dovetail.optimizer.placement.solve import solve_placement
from dovetail.optimizer.placement.solvers.hypergraph import build_hypergraph
from dovetail.optimizer.placement.solvers.search import plain_bound
from tests.support.oracles.placement import best_placement, random_placement, random_small_problem

CASES = 48
BLOCKS = 4
UNHURRIED_S = 3600.0
"""Rounds end a search, not the time, so that its outcome is the same on every machine."""


@pytest.mark.parametrize("block", range(BLOCKS))
def test_small_problems_are_solved_to_the_end(block: int) -> None:
    for seed in range(1000 + block, 1000 + CASES, BLOCKS):
        problem = random_small_problem(seed)
        start = random_placement(problem, seed)
        solution = solve_placement(problem, Settings(gap=0.0, time_budget_s=UNHURRIED_S), start)
        _, least = best_placement(problem)
        assert solution.cost == cost(problem, solution.partition_by_group), seed
        assert solution.cost.seconds <= cost(problem, start).seconds * (1 + 1e-9), seed
        if problem.costs.load_of == "each stream" or len(problem.streams) == 1:
            assert solution.cost.seconds == pytest.approx(least, rel=1e-5, abs=1e-6), seed
        assert solution.bound <= least * (1 + 1e-6) + 1e-9, seed


@pytest.mark.parametrize("block", range(BLOCKS))
def test_bounds_are_below_the_optimum_whatever_is_known(block: int) -> None:
    for seed in range(2000 + block, 2000 + CASES, BLOCKS):
        problem = random_small_problem(seed)
        best, least = best_placement(problem)
        nodes = build_hypergraph(problem)
        plain = plain_bound(nodes.graph)
        for known in (best, random_placement(problem, seed), problem.even()):
            bound = bound_by_eigenvalues(nodes.graph, nodes.parts(known), sweeps=3)
            assert plain <= bound <= least * (1 + 1e-9) + 1e-9, seed


@pytest.fixture(scope="module")
def workload() -> PlacementProblem:
    return random_placement_problem(4, 4, 16, 1)


@pytest.mark.parametrize("heuristics", [frozenset(), *({each} for each in HEURISTICS), frozenset(HEURISTICS)])
def test_every_heuristic_alone_is_no_worse_than_even(
    workload: PlacementProblem, heuristics: frozenset[Heuristic]
) -> None:
    settings = Settings(heuristics=frozenset(heuristics) | {"time budget"}, time_budget_s=UNHURRIED_S, rounds=1)
    solution = solve_placement(workload, settings)
    assert solution.bound <= solution.cost.seconds < cost(workload, workload.even()).seconds
    costs = [each.cost for each in solution.improvements]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == pytest.approx(solution.cost.seconds)
    assert solution.heuristics_used <= settings.heuristics


def test_correlated_keys_are_shared_evenly_and_proven_so(workload: PlacementProblem) -> None:
    solution = solve_placement(workload, Settings(time_budget_s=UNHURRIED_S))
    even = cost(workload, workload.even())
    assert solution.cost.shipped_rows < 0.75 * even.shipped_rows
    assert solution.cost.imbalance < 1.05
    assert solution.cost.seconds < 1.1 * prove(workload, solution)


def test_same_input_same_placement(workload: PlacementProblem) -> None:
    first, second = (solve_placement(workload, Settings(time_budget_s=UNHURRIED_S, seed=3)) for _ in range(2))
    assert first.partition_by_group == second.partition_by_group


def test_good_start_stays_as_it_is(workload: PlacementProblem) -> None:
    settings = Settings(time_budget_s=UNHURRIED_S)
    first = solve_placement(workload, settings)
    again = solve_placement(workload, settings, first.partition_by_group)
    assert again.cost.seconds <= first.cost.seconds
    moved = np.array(again.partition_by_group) != np.array(first.partition_by_group)
    assert moved.mean() < 0.5


def test_partitions_keep_the_numbers_that_they_had(workload: PlacementProblem) -> None:
    """The same placement with other numbers costs the same, so nothing has to move."""
    best = solve_placement(workload, Settings(time_budget_s=UNHURRIED_S)).partition_by_group
    turned = tuple(tuple((p + 1) % workload.partition_count for p in each) for each in best)
    again = solve_placement(workload, Settings(rounds=1, time_budget_s=0.0), turned)
    assert again.partition_by_group == turned


@pytest.mark.parametrize("budget_s", [0.0, 0.2])
def test_large_problem_has_an_answer_within_any_budget(budget_s: float) -> None:
    problem = random_placement_problem(8, 16, 64, 1)
    solve_placement(random_placement_problem(2, 2, 4, 1))
    began = time.process_time()
    solution = solve_placement(problem, Settings(time_budget_s=budget_s))
    # Building the graph and a running step cannot be cut short. Seconds of work, not of the clock.
    assert time.process_time() - began < budget_s + 10.0
    assert solution.cost.seconds <= cost(problem, problem.even()).seconds


def test_streams_that_nothing_connects_are_laid_over_each_other() -> None:
    one, other = (random_placement_problem(2, 4, 16, seed) for seed in (1, 2))
    streams = (
        *one.streams,
        *(PlacedStream(f"t{each.name}", tuple(c + 2 for c in each.use_classes), each.cells) for each in other.streams),
    )
    for load_of in ("all streams", "each stream"):
        costs = PlacementCosts(ship_s=1e-6, process_s=1e-6, senders=4, load_of=load_of)  # type: ignore[arg-type]
        both = PlacementProblem(16, 4, 4, streams, costs)
        # What is asserted holds from the first round on; the exact program would go on for minutes.
        apart = solve_placement(both, Settings(time_budget_s=1.0, rounds=1))
        assert "streams apart" in apart.heuristics_used
        assert apart.cost.imbalance < 1.25
        assert apart.cost.seconds < cost(both, both.even()).seconds
        assert apart.bound <= apart.cost.seconds


def test_where_nothing_is_shipped_only_balance_counts(workload: PlacementProblem) -> None:
    costs = PlacementCosts(ship_s=0.0, process_s=1.0)
    problem = PlacementProblem(16, 4, 4, workload.streams, costs)
    solution = solve_placement(problem, Settings(time_budget_s=UNHURRIED_S))
    assert solution.cost.imbalance < 1.01
    assert solution.heuristics_used & {"streams apart", "merged groups"}


def test_nothing_to_place_stays_even() -> None:
    problem = PlacementProblem(8, 4, 2, (), PlacementCosts(ship_s=1.0, process_s=1.0))
    assert solve_placement(problem).partition_by_group == problem.even()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Settings(heuristics=frozenset({"luck"})),  # type: ignore[arg-type]
        lambda: Settings(time_budget_s=-1.0),
        lambda: Settings(gap=-0.1),
        lambda: Settings(rounds=0),
    ],
)
def test_wrong_settings_are_refused_with_what_to_write_instead(wrong: object) -> None:
    with pytest.raises(QueryError, match="instead: "):
        wrong()  # type: ignore[operator]
