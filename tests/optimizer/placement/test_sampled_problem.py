"""What a placement costs, measured on arrays of a sample, against its definition on plain records."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dovetail.optimizer.placement.cost import cost
from dovetail.optimizer.placement.problem import PlacementCosts
from dovetail.optimizer.placement.sampled_problem import SampledProblem, SampledStream
from dovetail.plan.placement import Placement, Placements, even_placement
from dovetail.stats.key_group_sample import NO_GROUP, Cells

GROUPS, PARTITIONS = 8, 3
CLASSES = (frozenset({("a", "[x]"), ("b", "[x]")}), frozenset({("a", "[y]")}))


def cells_of(vectors: list[tuple[int, ...]], rows: list[float], *, sampled: float = 100.0) -> Cells:
    uses = tuple("xyz"[: len(vectors[0])])
    return Cells(uses, np.array(vectors, np.int16).T, np.array(rows), sampled)


def problem_of(seed: int, load_of: str) -> SampledProblem:
    chance = np.random.default_rng(seed)
    streams = []
    for name, classes, weight in (("a", (0, 1), 1.5), ("b", (0,), 0.5), ("twice", (1, 1, 0), 1.0)):
        groups = chance.integers(-1, GROUPS, (len(classes), chance.integers(1, 12)), np.int16)
        streams.append(
            SampledStream(
                name, classes, Cells(("u",) * len(classes), groups, chance.random(groups.shape[1]), 9.0), weight
            )
        )
    costs = PlacementCosts(ship_s=0.3, process_s=0.2, senders=2, load_of=load_of)  # type: ignore[arg-type]
    return SampledProblem(GROUPS, PARTITIONS, CLASSES, tuple(streams), costs)


# A stream in which some rows have no key: they go nowhere, and the least cost counted them.
@example(1532, "all streams")
@example(8821, "all streams")
@given(st.integers(0, 10_000), st.sampled_from(["all streams", "each stream"]))
def test_the_cost_is_that_of_the_definition(seed: int, load_of: str) -> None:
    sampled = problem_of(seed, load_of)
    chance = np.random.default_rng(seed + 1)
    placed = tuple(tuple(row) for row in chance.integers(0, PARTITIONS, (2, GROUPS)).tolist())
    found, defined = sampled.cost(placed), cost(sampled.problem, placed)
    assert found.seconds == pytest.approx(defined.seconds)
    assert found.loads == pytest.approx(defined.loads)
    assert (found.shipped_rows, found.unshared_rows) == pytest.approx((defined.shipped_rows, defined.unshared_rows))
    assert found.imbalance == pytest.approx(defined.imbalance)
    if load_of == "all streams":
        assert sampled.least_s <= found.seconds * (1 + 1e-9)


def test_what_nobody_ships_weighs_on_partitions_only() -> None:
    work = SampledStream("work", (0,), cells_of([(1,), (2,)], [30.0, 10.0]), 0.0)
    sampled = SampledProblem(GROUPS, 2, CLASSES, (work,), PlacementCosts(1.0, 1.0))
    found = sampled.cost(((0, 0, 1, 0, 0, 0, 0, 0), (0,) * GROUPS))
    assert (found.shipped_rows, found.ship_s, found.loads) == (0.0, 0.0, (30.0, 10.0))


def test_association_tells_chance_from_keys_that_go_together() -> None:
    chance = np.random.default_rng(2)
    x = chance.integers(0, GROUPS, 4000)
    apart = np.stack([x, chance.integers(0, GROUPS, 4000)]).astype(np.int16)
    halves = np.stack([x, chance.integers(0, GROUPS // 2, 4000) + (x >= GROUPS // 2) * GROUPS // 2]).astype(np.int16)
    together = np.stack([x, (x + 3) % GROUPS]).astype(np.int16)
    found = [
        SampledStream("a", (0, 1), Cells(("x", "y"), groups, np.ones(4000), 4000.0)).association()
        for groups in (apart, halves, together)
    ]
    assert found == pytest.approx([0.0, 1.0, GROUPS - 1.0], abs=0.05)
    nowhere = np.full((2, 5), NO_GROUP, np.int16)
    assert SampledStream("a", (0, 1), Cells(("x", "y"), nowhere, np.ones(5), 5.0)).association() == 0.0


def test_placements_of_classes_and_back() -> None:
    sampled = problem_of(1, "all streams")
    usual = even_placement(GROUPS, PARTITIONS)
    owners = ((0, 1, 2, 0, 1, 2, 0, 1), usual.partition_by_group)
    placements = sampled.placements(owners, usual)
    assert placements == Placements.of(usual, dict.fromkeys(CLASSES[0], Placement(owners[0], PARTITIONS)))
    assert sampled.partition_by_group(placements) == owners
