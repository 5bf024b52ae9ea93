"""No answer depends on which partition works on what: other placements of every use, and other numbers of partitions,
with every batch (S1, S4, D3). All random plans have them, those of `test_routings.py` above all; here are rows that are
decided by their partners, and what would be noticed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from dovetail.plan.placement import Placement, even_placement
from dovetail.plan.probe_tree import ProbeTree
from dovetail.plan.routing import HASH, Routing
from dovetail.runtime.message import Message
from dovetail.runtime.probe import partial, probe_operator
from dovetail.runtime.probe.lone_row_operator import ALL_ENTRIES, LoneRowOperator
from dovetail.runtime.probe.partial import Partial, send_partial
from dovetail.runtime.probe.route_entries import Route
from dovetail.testing.local_session import LocalSession
from tests.support.asserts import CaseFailed, check_case, scratch_dir
from tests.support.cases import EngineCase
from tests.support.generators.cases import CHAINS, DEFAULT_LIMITS, CaseLimits, random_case
from tests.support.generators.outer_cases import check_every_batch, random_outer_case
from tests.support.generators.plans import random_decisions

CASE_COUNT = int(os.environ.get("DOVETAIL_CASES", "600"))
FIRST_SEED = int(os.environ.get("DOVETAIL_SEED", "0"))


def placed_case(seed: int, limits: CaseLimits = DEFAULT_LIMITS) -> EngineCase:
    return replace(random_case(seed, limits), plan_seed=seed, key_groups=16)


def placed_outer_case(seed: int) -> EngineCase:
    return replace(random_outer_case(seed), plan_seed=seed, key_groups=16)


def test_rows_by_their_partners_are_answered_once_wherever_they_are_placed() -> None:
    answers = sum(
        check_every_batch(placed_outer_case(seed)) for seed in range(FIRST_SEED, FIRST_SEED + CASE_COUNT // 30)
    )
    assert answers or CASE_COUNT < 100


def check_semi_joins(seeds: Iterable[int]) -> None:
    for seed in seeds:
        check_semi_join(seed)


def check_semi_join(seed: int) -> None:
    """Most rows get their first partner in a later batch, from a right row that another partition may have placed."""
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
    rng = Random(seed)
    keys: dict[str, dict[int, int]] = {"a": {}, "b": {}}
    with tempfile.TemporaryDirectory(dir=scratch_dir()) as folder:
        session = LocalSession(folder, decide=random_decisions(seed), key_groups=16)
        for name in keys:
            session.create_stream(name, schema, event_time="ts")
        session.create_query(
            "SELECT a.v FROM a LEFT SEMI JOIN b ON a.k = b.k"
            " AND b.ts BETWEEN a.ts - INTERVAL 1 HOUR AND a.ts + INTERVAL 1 HOUR",
            "q",
        )
        for batch in range(5):
            tables = {}
            for name, key_by_row in keys.items():
                new = {batch * 100 + row: rng.randrange(150) for row in range(20)}
                key_by_row.update(new)
                times = pa.array([batch * 1_000_000] * len(new)).cast(schema.field("ts").type)
                tables[name] = pa.table({"k": list(new.values()), "v": list(new), "ts": times}, schema)
            session.push(tables)
        answers = sorted(session.results("q").column("v").to_pylist())
        session.close()
    expected = sorted(row for row, key in keys["a"].items() if key in keys["b"].values())
    if answers != expected:
        raise CaseFailed(f"seed {seed}: expected {expected}, got {answers}")


def test_rows_with_a_partner_are_answered_once_wherever_the_first_is_placed() -> None:
    check_semi_joins(range(FIRST_SEED, FIRST_SEED + CASE_COUNT // 100))


def test_right_rows_that_look_for_left_ones_of_another_placement_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = LoneRowOperator._asking

    def asking(self: Any, tree: ProbeTree, due: Any, route: Route) -> Any:
        usual = Route(HASH, self._task.plan.placement, self._partition)
        return right(self, tree, due, route if route is ALL_ENTRIES else usual)

    monkeypatch.setattr(LoneRowOperator, "_asking", asking)
    with pytest.raises(CaseFailed, match="seed"):
        check_semi_joins(range(10))


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
    for seed in range(12):
        try:
            check_case(placed_case(seed, limits))
        except CaseFailed:
            failures += 1
    assert failures > 1
