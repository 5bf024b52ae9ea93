"""On problems small enough to try everything, all forms keep to the truth."""

from __future__ import annotations

import pytest

from dovetail.optimizer.placement.cost import cost
from dovetail.optimizer.placement.solvers.hypergraph import build_hypergraph
from dovetail.optimizer.placement.solvers.mip import solve_mip
from tests.support.oracles.placement import best_placement, random_placement, random_small_problem

FEW, MANY = 60, 200


@pytest.mark.parametrize(
    "seed", [*range(FEW), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(FEW, MANY))]
)
def test_graph_costs_what_the_cells_say_and_the_exact_program_finds_the_optimum(seed: int) -> None:
    problem = random_small_problem(seed)
    nodes = build_hypergraph(problem)
    start = random_placement(problem, seed)
    parts = nodes.parts(start)
    assert nodes.graph.cost(parts) == pytest.approx(cost(problem, start).seconds)
    answer = solve_mip(nodes.graph, parts, 3600.0, 1e-6)
    _, least = best_placement(problem)
    assert answer.is_optimal
    assert answer.cost == pytest.approx(cost(problem, nodes.partition_by_group(answer.parts)).seconds)
    assert answer.cost == pytest.approx(least, rel=1e-5, abs=1e-6)
    assert answer.bound == pytest.approx(least, rel=1e-5, abs=1e-6)
