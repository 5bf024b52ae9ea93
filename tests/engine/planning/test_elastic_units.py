"""A session whose number of partitions follows its load: in one process, with real batches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dovetail.core.errors import SessionError
from dovetail.engine.explain.explain import explain_plan
from dovetail.engine.observe.finished_batch import FinishedBatch
from dovetail.engine.options import make_options
from dovetail.engine.planning import measure_units
from dovetail.engine.planning.measure_units import rewritten_rows, time_load
from dovetail.engine.planning.scale_units import Wish
from dovetail.kernels.match.hash_keys import group_of_codes, hash_keys
from dovetail.runtime.report import UnitWork
from dovetail.testing.local_session import LocalSession

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
SQL = (
    "SELECT a.v, b.v FROM a JOIN b ON a.k = b.k "
    "AND a.ts BETWEEN b.ts - INTERVAL 3 SECONDS AND b.ts + INTERVAL 3 SECONDS"
)
ELASTIC: dict[str, Any] = {
    "elastic": True,
    "partitions": 1,
    "key_groups": 16,
    "max_partitions": 8,
    "max_bytes_per_partition": 40_000,
    "small_batch_rows": 0,
}
"""200 rows a batch and stream fill about two partitions."""


@contextmanager
def joining(folder: Path, **options: Any) -> Iterator[LocalSession]:
    session = LocalSession(folder, **{**ELASTIC, **options})
    for stream in ("a", "b"):
        session.create_stream(stream, SCHEMA, "ts")
    session.create_query(SQL, "q")
    try:
        yield session
    finally:
        session.close()


def push(session: LocalSession, rows: int, hot_share: float = 0.0, hot_keys: Sequence[int] = (7,)) -> dict[str, Any]:
    """A second of both streams; the units' entry of its progress."""
    batch = session.engine.head.batch + 1
    rng = Random(batch)
    tables = {}
    for stream in ("a", "b"):
        keys = [rng.choice(hot_keys) if rng.random() < hot_share else rng.randrange(5000) for _ in range(rows)]
        times = pa.array([batch * 1_000_000 + row for row in range(rows)]).cast(pa.timestamp("us", "UTC"))
        tables[stream] = pa.table({"k": keys, "v": list(range(rows)), "ts": times}, SCHEMA)
    session.push(tables, splits=2)
    assert session.progress is not None
    units: dict[str, Any] = session.progress["units"]
    return units


def test_partitions_come_with_the_load_and_go_with_it(tmp_path: Path) -> None:
    with joining(tmp_path) as session:
        entries = [push(session, rows) for rows in (*[200] * 6, *[900] * 9, *[200] * 10)]
        history = session.engine.plans.changes
    counts = [entry["partitions"] for entry in entries]
    changes = [(was, now) for was, now in pairwise(counts) if was != now]
    assert [now > was for was, now in changes] == [True, True, False]
    assert [entry["movedRows"] for entry in entries] == [0] * len(entries)
    assert entries[-1]["load"] < 0.8
    assert entries[-1]["changes"] == 3
    assert [change.reasons[0].split(": ")[1] for change in history] == [
        f"{now} partitions instead of {was}" for was, now in changes
    ]
    assert history[0].reasons[0].startswith("memory load 1.")
    assert " over 0.8 for 3 batches: " in history[0].reasons[0]


def test_a_short_flicker_changes_nothing(tmp_path: Path) -> None:
    with joining(tmp_path, partitions=3) as session:
        entries = [push(session, rows) for rows in (*[200] * 8, 450, *[200] * 8, 20, 20, *[200] * 6)]
    assert {entry["partitions"] for entry in entries} == {3}
    assert Wish.MORE.value in {entry["wish"] for entry in entries}


def test_what_is_stored_says_how_many_partitions_a_restart_begins_with(tmp_path: Path) -> None:
    with joining(tmp_path, elastic=True) as session:
        entries = [push(session, 900) for _ in range(8)]
    with joining(tmp_path) as session:
        assert push(session, 900)["partitions"] >= entries[-1]["partitions"] // 2 > 1


def test_a_batch_that_takes_the_whole_interval_asks_for_more(tmp_path: Path) -> None:
    with joining(tmp_path, max_bytes_per_partition=1 << 30) as session:
        assert session.engine.plans.elastic is not None
        session.engine.plans.elastic.interval_s = 1e-3
        entries = [push(session, 50) for _ in range(5)]
        session.engine.plans.elastic.run_at_once(2)
        entries += [push(session, 50) for _ in range(5)]
    assert entries[3]["partitions"] == 8
    # Once it is known that two run at once, the others are let go.
    assert [entry["partitions"] for entry in entries[5:]] == [8, 8, 8, 2, 2]


def test_time_asks_for_no_more_partitions_than_cores(tmp_path: Path) -> None:
    with joining(tmp_path, max_bytes_per_partition=1 << 30) as session:
        assert session.engine.plans.elastic is not None
        session.engine.plans.elastic.interval_s = 1e-3
        session.engine.plans.elastic.run_at_once(2)
        entries = [push(session, 50) for _ in range(8)]
    assert [entry["partitions"] for entry in entries] == [1] * 3 + [2] * 5


def test_a_batch_waits_for_its_slowest_unit_and_more_units_would_not_help_that() -> None:
    work = [UnitWork(0, 1, seconds=0.5), UnitWork(0, 2, seconds=0.1), UnitWork(1, 1, seconds=0.2)]
    assert time_load(work, 2, 0.9, 1.0, is_one_task=False) == pytest.approx((0.7, 0.9))
    assert time_load(work, 2, 0.9, 1.0, is_one_task=True) == pytest.approx((0.9, 0.9))


@pytest.mark.parametrize("routing", ["hash", "auto"])
def test_a_hot_partition_is_split_and_no_partition_added(tmp_path: Path, routing: str) -> None:
    """A7: a third of the rows has one key; on average partitions are half full."""
    with joining(tmp_path, partitions=4, max_bytes_per_partition=400_000, routing=routing) as session:
        entries = [push(session, 2500, hot_share=0.33) for _ in range(9)]
        plan = session.engine.plans.planned().plan
    assert {entry["partitions"] for entry in entries} == {4}
    settled = entries[-1]
    assert 0.3 < settled["load"] < 0.8
    assert any(routing.split_codes for *_, routing in plan.routings) == (routing == "auto")
    assert settled["isHot"] == (routing == "hash")
    assert (settled["hottestLoad"] < 0.8) == (routing == "auto")


@pytest.mark.parametrize("placement", ["even", "shared"])
def test_hot_key_groups_are_placed_anew_and_no_partition_added(tmp_path: Path, placement: str) -> None:
    """Many keys, none of them frequent, lie in the groups of the first partition."""
    keys = np.arange(5000)
    groups = group_of_codes(hash_keys([pa.array(keys)]).codes, 16)
    crowded = keys[groups < 4].tolist()
    options = {"routing": "hash", "placement": placement, "max_bytes_per_partition": 400_000}
    with joining(tmp_path, partitions=4, **options) as session:
        entries = [push(session, 2500, 0.5, crowded) for _ in range(14)]
    assert {entry["partitions"] for entry in entries} == {4}
    assert entries[3]["isHot"]
    assert entries[-1]["isHot"] == (placement == "even")


def test_rows_that_a_change_rewrites_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The figure is no constant: without knowing which merges are usual, it counts all of them."""
    seen: list[FinishedBatch] = []

    def noted(batch: FinishedBatch, fanout: int) -> int:
        seen.append(batch)
        return rewritten_rows(batch, fanout)

    monkeypatch.setattr("dovetail.engine.planning.elastic_units.rewritten_rows", noted)
    with joining(tmp_path, merge_fanout=2) as session:
        for _ in range(8):
            push(session, 900)
    assert seen
    batch = next(each for each in seen if each.report.merges)
    assert rewritten_rows(batch, 2) == 0
    with monkeypatch.context() as patch:
        patch.setattr(measure_units, "choose_merges", lambda *_: ())
        assert rewritten_rows(batch, 2) == sum(merge.merged.rows for merge in batch.report.merges) > 0
    moved = replace(batch.written[0], lower_batch=0)
    assert rewritten_rows(replace(batch, written=(moved,)), 2) == moved.rows


def test_explain_says_how_full_partitions_are(tmp_path: Path) -> None:
    with joining(tmp_path) as session:
        for _ in range(4):
            push(session, 200)
        text = explain_plan(session.engine, "text")
        record = explain_plan(session.engine, "json")
    assert "elastic, 1 to 8 partitions: batch ran with 1, load memory 1." in text
    assert "changes with the next batch" in text
    assert "over 0.8 for 3 batches: 3 partitions instead of 1" in text
    assert json.loads(json.dumps(record))["partitioning"]["units"]["partitions"] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_partitions": 4}, "max_partitions is given, and the number of partitions is fixed"),
        ({"elastic": True, "max_partitions": 200}, "max_partitions is 200"),
        ({"elastic": True, "min_partitions": 9, "max_partitions": 4}, "min_partitions is 9, max_partitions 4"),
        ({"elastic": True, "target_load": 0.9}, "target_load 0.9, high_load 0.8"),
        ({"elastic": True, "high_load": "much"}, "high_load is 'much'"),
        ({"elastic": True, "scale_after": 0}, "scale_after is 0"),
        ({"elastic": "yes"}, "elastic is 'yes'"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SessionError, match=message):
        make_options(**options)
