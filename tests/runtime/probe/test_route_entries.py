from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from dovetail.plan.placement import Placement, even_placement
from dovetail.plan.routing import HASH, RANDOM, Routing
from dovetail.runtime.probe.route_entries import Part, Route, targets

ROUTINGS = [
    HASH,
    RANDOM,
    Routing(subgroups=2),
    Routing(subgroups=3),
    Routing(subgroups=9),
    Routing(split_stored=(3 << 60, 11 << 60)),
    Routing(split_probing=(3 << 60, 11 << 60)),
    Routing(subgroups=2, split_stored=(11 << 60,), split_probing=(0, 15 << 60)),
]


def codes_of(rng: Random, count: int) -> np.ndarray:
    return np.sort(np.array([rng.randrange(16) << 60 for _ in range(count)], np.uint64))


def pairs(probing: np.ndarray, stored: np.ndarray, probing_idx: np.ndarray, stored_idx: np.ndarray) -> Counter:
    return Counter((p, s) for p in probing_idx.tolist() for s in stored_idx.tolist() if probing[p] == stored[s])


@pytest.mark.parametrize("routing", ROUTINGS, ids=str)
@pytest.mark.parametrize("is_even", [True, False], ids=["even", "scattered"])
@pytest.mark.parametrize("partitions", [1, 2, 3, 5, 8])
def test_every_pair_is_looked_at_in_one_partition(routing: Routing, partitions: int, *, is_even: bool) -> None:
    rng = Random(f"{routing} {partitions}")
    scattered = Placement(tuple(rng.randrange(partitions) for _ in range(8)), partitions)
    placement = even_placement(8, partitions) if is_even else scattered
    probing, stored = codes_of(rng, 60), codes_of(rng, 70)
    everything = pairs(probing, stored, np.arange(60), np.arange(70))
    new_rows: Counter = Counter()
    partial_results: Counter = Counter()
    refs = (np.array([rng.randrange(1 << 40) for _ in probing], np.uint64),)
    rows_by_target = dict(targets(routing, placement, probing, refs))
    for partition in range(partitions):
        route = Route(routing, placement, partition)
        received = rows_by_target.get(partition, np.zeros(0, np.int64))
        for part, choice in route.probing():
            here = np.arange(60)[choice.positions(probing, 7)]
            new_rows += looked_at(route, part, probing, stored, here)
        for part, idx in route.parts_of(probing[received]):
            partial_results += looked_at(route, part, probing, stored, received if idx is None else received[idx])
    assert new_rows == everything
    assert partial_results == everything


def looked_at(route: Route, part: Part, probing: np.ndarray, stored: np.ndarray, here: np.ndarray) -> Counter:
    found: Counter = Counter()
    if len(here):
        for choice in route.stored(part, probing[here]):
            found += pairs(probing, stored, here, np.arange(len(stored))[choice.positions(stored, 5)])
    return found


@pytest.mark.parametrize("routing", ROUTINGS, ids=str)
def test_copies_say_in_how_many_partitions_a_probing_row_is(routing: Routing) -> None:
    probing = codes_of(Random(1), 200)
    counted = 0.0
    for partition in range(5):
        route = Route(routing, even_placement(8, 5), partition)
        for part, choice in route.probing():
            counted += len(np.arange(200)[choice.positions(probing, 3)]) / route.copies[part]
    assert counted == pytest.approx(200)


def test_a_long_run_is_dealt_out_evenly() -> None:
    run = np.full(1003, 5 << 60, np.uint64)
    for routing in (RANDOM, Routing(split_stored=(5 << 60,))):
        shares = []
        for partition in range(5):
            route = Route(routing, even_placement(8, 5), partition)
            part = Part.SPLIT_STORED if routing.split_stored else Part.OWN
            shares.append(sum(len(run[c.positions(run, 11)]) for c in route.stored(part, run[:1])))
        assert sorted(shares) == [200, 200, 201, 201, 201]


def test_subgroups_own_the_key_groups_of_their_members() -> None:
    placement = Placement((0, 1, 2, 3, 0, 1, 2, 3), 4)
    route = Route(Routing(subgroups=2), placement, 1)
    codes = np.arange(8, dtype=np.uint64) << np.uint64(61)
    seen = [code >> 61 for _, choice in route.probing() for code in codes[choice.positions(codes, 0)].tolist()]
    assert seen == [0, 1, 4, 5]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Routing(subgroups=0),
        lambda: Routing(split_stored=(2, 1)),
        lambda: Routing(split_stored=(1,), split_probing=(1,)),
        lambda: Routing(subgroups=1, split_stored=(1,)),
    ],
)
def test_a_routing_that_means_nothing_is_refused(make: object) -> None:
    with pytest.raises(ValueError, match=r"subgroup|ascend|one side|special"):
        make()  # type: ignore[operator]
