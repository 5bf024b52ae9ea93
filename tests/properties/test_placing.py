"""No answer depends on placements that follow the data, however restless the rules make them (S4, D3)."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial

import pytest

from dovetail.engine.planning import planner
from dovetail.engine.planning.key_group_placer import KeyGroupPlacer, PlacingRules
from dovetail.engine.planning.planner import Planned, Planner
from tests.support.asserts import check_case
from tests.support.cases import EngineCase
from tests.support.generators.cases import random_case

CASE_COUNT = int(os.environ.get("DOVETAIL_CASES", "600"))
FIRST_SEED = int(os.environ.get("DOVETAIL_SEED", "0"))
RESTLESS = PlacingRules(worth=-1.0, drift=0.0, association_drift=0.0, in_a_row=1, budget_s=0.02, least_rows=0)


def restless_case(seed: int, copies: str | None) -> EngineCase:
    return replace(random_case(seed), key_groups=16, partitions=2 + seed % 3, copies=copies)


@pytest.fixture
def changes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Batches from which on key groups were placed anew."""
    found: list[int] = []
    note_committed = Planner.note_committed

    def noted(self: Planner, batch: int, planned: Planned, run_ms: float, rows: int) -> None:
        running = self.running
        if running is not None and running.plan.placements.special != planned.plan.placements.special:
            found.append(batch)
        note_committed(self, batch, planned, run_ms, rows)

    monkeypatch.setattr(Planner, "note_committed", noted)
    monkeypatch.setattr(planner, "KeyGroupPlacer", partial(KeyGroupPlacer, rules=RESTLESS))
    return found


@pytest.mark.parametrize("copies", ["partition", None])
def test_answers_are_the_oracles_while_placements_follow_the_data(copies: str | None, changes: list[int]) -> None:
    """Where rows are shipped, and where they are not; the number of partitions follows the load in some cases."""
    count = CASE_COUNT // 24
    for seed in range(FIRST_SEED, FIRST_SEED + count):
        elastic = {"elastic": True, "max_bytes_per_partition": 2000, "scale_after": 1} if seed % 3 == 0 else {}
        check_case(restless_case(seed, copies), placement="shared", **elastic)
    assert len(changes) > count / 4
