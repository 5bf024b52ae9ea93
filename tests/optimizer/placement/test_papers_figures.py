"""SASPAR's Figures 1 and 2, as far as its text gives them; the tuples that it does not name are chosen to fit."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest

from dovetail.optimizer.placement.cost import cost
from dovetail.optimizer.placement.problem import Cell, PartitionByGroup, PlacedStream, PlacementCosts, PlacementProblem
from dovetail.optimizer.placement.solvers.hypergraph import build_hypergraph
from dovetail.optimizer.placement.solvers.mip import solve_mip
from tests.support.oracles.placement import best_placement

EVEN_COSTS = PlacementCosts(ship_s=1.0, process_s=1.0)

PURCHASES = ((2, 1), (4, 1), (2, 3), (2, 2), (4, 2), (6, 4), (3, 2), (1, 2))
"""User and gem pack. Figure 1 copies [3,2] and [1,2] in spite of sharing."""

SHARED_WITH = (
    (3, 0, 0, 0, 0, 0, 0, 3),
    (0, 2, 0, 0, 0, 0, 0, 0),
    (0, 0, 4, 0, 0, 0, 0, 0),
    (0, 1, 0, 0, 2, 0, 0, 0),
    (0, 0, 0, 2, 0, 0, 1, 0),
    (0, 0, 0, 0, 0, 2, 0, 0),
    (0, 0, 0, 0, 0, 0, 3, 0),
    (0, 0, 0, 1, 0, 0, 0, 1),
)
"""Figure 2: tuples by key group of Q1 (line) and of Q2. Of the six in Q1's G1, three are in Q2's G1, three in G8."""


def figure_1(partitions: int) -> PlacementProblem:
    cells = Counter((gem % partitions, (user + gem) % partitions) for user, gem in PURCHASES)
    stream = PlacedStream("purchases", (0, 1), tuple(Cell(groups, rows) for groups, rows in cells.items()))
    return PlacementProblem(partitions, partitions, 2, (stream,), EVEN_COSTS)


def figure_2() -> PlacementProblem:
    cells = tuple(
        Cell((first, second), rows)
        for first, line in enumerate(SHARED_WITH)
        for second, rows in enumerate(line)
        if rows
    )
    return PlacementProblem(8, 3, 2, (PlacedStream("purchases", (0, 1), cells),), EVEN_COSTS)


def exact(problem: PlacementProblem) -> tuple[PartitionByGroup, float]:
    nodes = build_hypergraph(problem)
    answer = solve_mip(nodes.graph, nodes.parts(problem.even()), 60.0, 1e-6)
    assert answer.is_optimal
    return nodes.partition_by_group(answer.parts), answer.cost


def test_figure_1_ships_ten_tuples_instead_of_sixteen() -> None:
    problem = figure_1(2)
    placement, seconds = exact(problem)
    found = cost(problem, placement)
    assert (found.unshared_rows, found.shipped_rows, found.imbalance) == (16, 10, 1.0)
    assert seconds == found.seconds == best_placement(problem)[1]


def test_figure_1_with_three_partitions_is_optimal_too() -> None:
    problem = figure_1(3)
    placement, seconds = exact(problem)
    assert seconds == pytest.approx(best_placement(problem)[1])
    assert cost(problem, placement).shipped_rows < 16


def test_figure_2_moves_key_groups_so_that_tuples_are_shared_and_copies_few_for_balance() -> None:
    problem = figure_2()
    assert sum(SHARED_WITH[0]) == 6
    placement, seconds = exact(problem)
    found, before = cost(problem, placement), cost(problem, problem.even())
    assert seconds == pytest.approx(_least_seconds_of_figure_2())
    rows = sum(map(sum, SHARED_WITH))
    assert rows < found.shipped_rows < before.shipped_rows < found.unshared_rows == 2 * rows
    assert found.imbalance < before.imbalance
    # All on one partition would ship each tuple once, and one partition would do all work.
    assert seconds < cost(problem, ((0,) * 8,) * 2).seconds


def _least_seconds_of_figure_2() -> float:
    """Every placement of Q1, and for each the cheapest of Q2 for every load of the first two partitions."""
    shared = np.array(SHARED_WITH)
    total = 2 * int(shared.sum())
    least = float("inf")
    for first in product(range(3), repeat=7):
        places = np.array((0, *first))
        loads = np.bincount(places, shared.sum(axis=1), minlength=3).astype(int)
        copies = np.full((total + 1, total + 1), np.inf)
        copies[loads[0], loads[1]] = shared.sum()
        for group in range(8):
            rows = int(shared[:, group].sum())
            before, copies = copies, np.full_like(copies, np.inf)
            for p, (down, right) in enumerate(((rows, 0), (0, rows), (0, 0))):
                apart = shared[places != p, group].sum()
                moved = before[: total + 1 - down, : total + 1 - right] + apart
                np.minimum(copies[down:, right:], moved, out=copies[down:, right:])
        one, other = np.indices(copies.shape)
        least = min(least, float((copies + np.maximum(np.maximum(one, other), total - one - other)).min()))
    return least
