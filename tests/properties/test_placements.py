"""No answer depends on which partition works on what, and no row is stored twice for it (B1, S1, S4, D3).

All random plans have other routings and placements with every batch (`test_scenarios.py`); here are rows whose first
partner is placed elsewhere, and the rows that are stored.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from dovetail.plan.routing import HASH
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.probe import lone_row_operator
from dovetail.runtime.probe.probe_operator import ProbeOperator
from dovetail.runtime.probe.route_entries import Route
from dovetail.runtime.report import UnitWork
from dovetail.testing.local_session import LocalSession
from tests.support.asserts import CaseFailed, scratch_dir
from tests.support.generators.plans import random_decisions, random_policies
from tests.support.keep_failures import seeds_of

OPTIONS: list[dict[str, object]] = [
    {"routing": "hash"},
    {"routing": "random"},
    {"routing": "contrand"},
    {"routing": "contrand", "routing_subgroups": 3},
    {"routing": "auto"},
    {"plan_seed": 1},
]


def open_session(folder: str, plan_seed: int | None = None, **options: Any) -> LocalSession:
    """With a seed, plans are random."""
    if plan_seed is None:
        return LocalSession(folder, **options)
    session = LocalSession(folder, decide=random_decisions(plan_seed), **options)
    session.engine.plans.follow(random_policies(plan_seed))
    return session


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: str(options.get("routing", "random plans")))
def test_every_row_is_stored_once_whatever_the_routing(options: dict[str, object]) -> None:
    """B1: stored rows over input rows; nothing expires here, so all that was ever written is still there."""
    rng = Random(str(options))
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64())])
    with tempfile.TemporaryDirectory(dir=scratch_dir()) as folder:
        session = open_session(folder, partitions=5, small_batch_rows=0, **options)
        for stream in ("a", "b"):
            session.create_stream(stream, schema)
        session.create_query("SELECT a.v, b.v FROM a JOIN b ON a.k = b.k", "q")
        for _ in range(6):
            columns = {"k": [rng.choice([1, 1, 1, rng.randrange(50)]) for _ in range(100)], "v": list(range(100))}
            session.push({stream: pa.table(columns, schema) for stream in ("a", "b")}, splits=2)
        stored = sum(store["numRows"] for store in (session.progress or {})["stores"])
        session.close()
    assert stored / (6 * 2 * 100) == 1.0


def check_semi_joins(seeds: Iterable[int]) -> None:
    for seed in seeds:
        check_semi_join(seed)


def check_semi_join(seed: int) -> None:
    """Most rows get their first partner in a later batch, from a right row that another partition may have placed."""
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
    rng = Random(seed)
    keys: dict[str, dict[int, int]] = {"a": {}, "b": {}}
    with tempfile.TemporaryDirectory(dir=scratch_dir()) as folder:
        session = open_session(folder, plan_seed=seed, key_groups=16)
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
    check_semi_joins(seeds_of(0, 1, 0.01))


def test_right_rows_that_look_for_left_ones_of_another_placement_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def elsewhere(task: BatchTask, snapshots: Any, tell: Any, report: Any, work: UnitWork, *rest: Any) -> ProbeOperator:
        *others, route = rest
        usual = Route(HASH, task.plan.placement, work.partition)
        return ProbeOperator(
            task, snapshots, tell, report, work, *others, route if route is lone_row_operator.ALL_ENTRIES else usual
        )

    monkeypatch.setattr(lone_row_operator, "ProbeOperator", elsewhere)
    with pytest.raises(CaseFailed, match="seed"):
        check_semi_joins(range(10))
