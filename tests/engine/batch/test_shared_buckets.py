"""A file with buckets of several stores lives as long as one of them."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa

from dovetail.testing.local_session import LocalSession

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
START = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
SHORT = "SELECT a.k FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 SECOND"
LONG = "SELECT c.k FROM c JOIN d ON c.k = d.k AND d.ts BETWEEN c.ts AND c.ts + INTERVAL 30 SECONDS"
MERGE_EVERY = 4


def rows(batch: int) -> dict[str, pa.Table]:
    second = START + datetime.timedelta(seconds=5 * batch)
    return {name: pa.table([[batch, batch - 4], [second] * 2], schema=SCHEMA) for name in "abcd"}


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in (folder / "buckets").rglob("*") if path.is_file()}


def named(session: LocalSession) -> set[str]:
    return {meta.path for meta in session.engine.head.state.buckets}


def test_a_file_goes_with_the_last_of_its_buckets_and_answers_stay_exact(tmp_path: Path) -> None:
    with LocalSession(tmp_path / "checkpoint") as session:
        for name in "abcd":
            session.create_stream(name, SCHEMA, event_time="ts")
        session.create_query(SHORT, "short")
        session.create_query(LONG, "long")
        shared_by_few = 0
        for batch in range(24):
            session.push(rows(batch))
            buckets = session.engine.head.state.buckets
            assert named(session) <= files(tmp_path / "checkpoint")
            stores_by_path: dict[str, set[str]] = {}
            for meta in buckets:
                stores_by_path.setdefault(meta.path, set()).add(meta.store)
            shared_by_few += sum(len(stores) < 4 and "shared" in path for path, stores in stores_by_path.items())
        assert shared_by_few, "files outlive the first of their buckets"
        # Those of the two newest batches may be needed once more.
        assert len(files(tmp_path / "checkpoint") - named(session)) <= 2 * MERGE_EVERY
        assert sorted(session.results("short").column("k").to_pylist()) == sorted([*range(24), *range(-4, 20)])
        # Batch n brings n and n - 4: a key meets its own batch, and four batches later what is 20 s older.
        assert sorted(session.results("long").column("k").to_pylist()) == sorted(
            [*range(24), *range(-4, 20), *range(20)]
        )
    with LocalSession(tmp_path / "checkpoint") as again:
        for name in "abcd":
            again.create_stream(name, SCHEMA, event_time="ts")
        again.push(rows(24))
        assert 24 in again.results("short").column("k").to_pylist()
