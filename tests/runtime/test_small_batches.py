"""A small batch is one task, for which nothing is spread over partitions; the next may be spread again."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from dovetail.engine.batch import make_task
from dovetail.runtime.batch_task import BatchTask
from dovetail.testing import local_session
from dovetail.testing.local_session import LocalSession

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us", tz="UTC"))])
NEAR = "b.ts BETWEEN a.ts - INTERVAL 5 SECONDS AND a.ts + INTERVAL 5 SECONDS"
QUERIES = {
    "rows": f"SELECT a.k, b.v FROM a JOIN b ON a.k = b.k AND {NEAR}",
    "groups": f"SELECT a.k, count(*) AS n FROM a JOIN b ON a.k = b.k AND {NEAR} GROUP BY a.k",
    "lone": f"SELECT a.k FROM a LEFT ANTI JOIN b ON a.k = b.k AND b.k > 3 AND {NEAR}",
    "bands": f"SELECT a.v, b.v AS w FROM a JOIN b ON ABS(a.v - b.v) <= 1 AND {NEAR}",
}
SMALL, LARGE = 30, 300


def rows_of(batch: int, count: int) -> pa.Table:
    numbers = range(batch * 1000, batch * 1000 + count)
    times = pa.array([batch * 1_000_000 + number % 1000 for number in numbers]).cast(SCHEMA.field("ts").type)
    return pa.table({"k": [n % 13 for n in numbers], "v": [n % 7 for n in numbers], "ts": times}, SCHEMA)


def answers(folder: Path, small_batch_rows: int) -> dict[str, Counter[tuple[object, ...]]]:
    with LocalSession(folder, partitions=3, small_batch_rows=small_batch_rows, merge_fanout=2) as session:
        for name in "ab":
            session.create_stream(name, SCHEMA, event_time="ts", lateness="1 second")
        for name, sql in QUERIES.items():
            session.create_query(sql, name)
        for batch in range(12):
            # Each batch is run as the one before promises.
            count = LARGE if batch % 4 == 3 else SMALL
            session.push({"a": rows_of(batch, count), "b": rows_of(batch + 1, count)})
        assert session.progress is not None
        assert max(store["numBuckets"] for store in session.progress["stores"]) < 12
        return {name: Counter(tuple(row.values()) for row in session.results(name).to_pylist()) for name in QUERIES}


def test_answers_are_the_same_however_batches_are_spread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    partitions: list[int] = []
    run_local = local_session.run_local

    def watched(task: BatchTask, *given: object, **named: object) -> object:
        partitions.append(task.plan.placement.partition_count)
        assert all(merge.partition < partitions[-1] for merge in task.merges)
        return run_local(task, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(local_session, "run_local", watched)
    spread = answers(tmp_path / "spread", 0)
    assert set(partitions) == {3}
    partitions.clear()
    monkeypatch.setattr(make_task, "SMALL_WORK_S", math.inf)
    mixed = answers(tmp_path / "mixed", 2 * SMALL + 1)
    assert partitions == [3, 1, 1, 1] * 3
    assert mixed == spread
    assert all(mixed.values())
