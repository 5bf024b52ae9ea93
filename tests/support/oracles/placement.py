"""Placements by trying everything: small problems only, slow on purpose, no search idea shared with the solvers."""

from __future__ import annotations

import random
from itertools import product

from dovetail.optimizer.placement.cost import cost
from dovetail.optimizer.placement.problem import (
    Cell,
    PartitionByGroup,
    PlacedStream,
    PlacementCosts,
    PlacementProblem,
)

MAX_PLACEMENTS = 20_000


def best_placement(problem: PlacementProblem) -> tuple[PartitionByGroup, float]:
    """The first of the cheapest, and its seconds."""
    groups, best, least = problem.group_count, problem.even(), float("inf")
    for places in product(range(problem.partition_count), repeat=problem.class_count * groups):
        placement = tuple(tuple(places[at : at + groups]) for at in range(0, len(places), groups))
        seconds = cost(problem, placement).seconds
        if seconds < least:
            best, least = placement, seconds
    return best, least


def random_small_problem(seed: int) -> PlacementProblem:
    """One to three streams and classes, few key groups; rows that some uses do not want, costs of any relation."""
    rng = random.Random(seed)
    while True:
        classes, groups, partitions = rng.randint(1, 3), rng.randint(1, 5), rng.randint(1, 4)
        if partitions ** (classes * groups) <= MAX_PLACEMENTS:
            break
    streams = tuple(
        _random_stream(rng, f"s{number}", classes, groups) for number in range(rng.choice((0, 1, 1, 1, 2, 2, 3)))
    )
    costs = PlacementCosts(
        ship_s=rng.choice((0.0, 0.5, 1.0, 4.0)),
        process_s=rng.choice((0.0, 0.3, 1.0, 5.0)),
        local_s=0.1,
        local_share=rng.choice((0.0, 0.5)),
        senders=rng.choice((1, partitions)),
        load_of=rng.choice(("all streams", "each stream")),
    )
    return PlacementProblem(groups, partitions, classes, streams, costs)


def _random_stream(rng: random.Random, name: str, classes: int, groups: int) -> PlacedStream:
    uses = tuple(rng.randrange(classes) for _ in range(rng.randint(1, 3)))
    cells = tuple(
        Cell(
            tuple(None if rng.random() < 0.15 else rng.randrange(groups) for _ in uses),
            rng.choice((0.0, 1.0, 2.0, 7.5)),
        )
        for _ in range(rng.randint(0, 12))
    )
    return PlacedStream(name, uses, cells, row_weight=rng.choice((1.0, 3.0)))


def random_placement(problem: PlacementProblem, seed: int) -> PartitionByGroup:
    rng = random.Random(seed)
    return tuple(
        tuple(rng.randrange(problem.partition_count) for _ in range(problem.group_count))
        for _ in range(problem.class_count)
    )
