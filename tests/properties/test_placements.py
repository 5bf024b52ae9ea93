"""No answer depends on which partition works on what: other placements of every use, and other numbers of partitions,
with every batch (S1, S4, D3). All random plans have them, those of `test_routings.py` above all; here are rows that are
decided by their partners, and what would be noticed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from dovetail.plan.placement import Placement, even_placement
from dovetail.plan.routing import Routing
from dovetail.runtime import partial, probe_operator
from dovetail.runtime.message import Message
from dovetail.runtime.partial import Partial, send_partial
from dovetail.runtime.route_entries import Route
from dovetail.testing.asserts import CaseFailed, check_case
from dovetail.testing.cases import EngineCase
from dovetail.testing.generators import CHAINS, DEFAULT_LIMITS, CaseLimits, random_case
from dovetail.testing.outer_cases import check_every_batch, random_outer_case

CASE_COUNT = int(os.environ.get("DOVETAIL_CASES", "600"))
FIRST_SEED = int(os.environ.get("DOVETAIL_SEED", "0"))


def placed_case(seed: int, limits: CaseLimits = DEFAULT_LIMITS) -> EngineCase:
    return replace(random_case(seed, limits), plan_seed=seed, key_groups=16)


def placed_outer_case(seed: int) -> EngineCase:
    return replace(random_outer_case(seed), plan_seed=seed, key_groups=16)


def test_rows_by_their_partners_are_answered_once_wherever_they_are_placed() -> None:
    answers = sum(
        check_every_batch(placed_outer_case(seed)) for seed in range(FIRST_SEED, FIRST_SEED + CASE_COUNT // 12)
    )
    assert answers > 100


def test_partial_results_that_go_by_another_placement_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def sent(rows: Partial, routing: Routing, placement: Placement) -> Iterator[Message]:
        return send_partial(rows, routing, even_placement(placement.group_count, placement.partition_count))

    monkeypatch.setattr(partial, "send_partial", sent)
    assert_noticed(CHAINS)


def test_partitions_that_disagree_on_a_placement_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Turned(Route):
        """The last partition has an older placement."""

        def __init__(self, routing: Routing, placement: Placement, partition: int) -> None:
            if partition == placement.partition_count - 1:
                owners = placement.partition_by_group
                placement = replace(placement, partition_by_group=(*owners[1:], owners[0]))
            super().__init__(routing, placement, partition)

    monkeypatch.setattr(probe_operator, "Route", Turned)
    assert_noticed(DEFAULT_LIMITS)


def assert_noticed(limits: CaseLimits) -> None:
    failures = 0
    for seed in range(25):
        try:
            check_case(placed_case(seed, limits))
        except CaseFailed:
            failures += 1
    assert failures > 2
