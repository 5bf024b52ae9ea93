"""More queries on one step than fit in a word of leg bits, with different selections and windows."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa

from dovetail.testing.local_session import LocalSession

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us", tz="UTC")), ("k", pa.int32()), ("x", pa.int32())])
EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
QUERY_COUNT = 150
BATCHES = 5


def _rows(chance: random.Random, batch: int) -> pa.Table:
    rows = [
        {
            "id": batch * 1000 + i,
            "ts": EPOCH + timedelta(milliseconds=1000 * batch + chance.randrange(1000)),
            "k": chance.choice([None, *range(12)]),
            "x": chance.randrange(100),
        }
        for i in range(60)
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _sql(place: int) -> str:
    third = "JOIN c ON b.x = c.x AND c.ts BETWEEN b.ts - INTERVAL 1 SECOND AND b.ts" if place % 5 == 0 else ""
    return (
        f"SELECT a.id AS a, b.id AS b FROM a JOIN b ON a.k = b.k "
        f"AND b.ts BETWEEN a.ts - INTERVAL {place % 3} SECONDS AND a.ts + INTERVAL {1 + place % 2} SECONDS {third} "
        f"WHERE a.x < {place % 100} AND b.x >= {(place * 7) % 90}"
    )


def test_a_hundred_and_fifty_queries_on_one_step_each_get_their_own_answer(tmp_path: Path) -> None:
    chance = random.Random(7)
    session = LocalSession(tmp_path / "checkpoint")
    for name in "abc":
        session.create_stream(name, SCHEMA, event_time="ts", lateness="1 second")
    for place in range(QUERY_COUNT):
        session.create_query(_sql(place), name=f"q{place}")
    pushed: dict[str, list[pa.Table]] = {name: [] for name in "abc"}
    for batch in range(BATCHES):
        tables = {name: _rows(chance, batch) for name in "abc"}
        session.push(tables, splits=2)
        for name, table in tables.items():
            pushed[name].append(table)
    oracle = duckdb.connect()
    for name, tables in pushed.items():
        oracle.register(name, pa.concat_tables(tables))
    total = 0
    for place in range(QUERY_COUNT):
        expected = sorted(oracle.execute(_sql(place)).fetchall())
        got = sorted((row["a"], row["b"]) for row in session.results(f"q{place}").to_pylist())
        assert got == expected, f"q{place}: {_sql(place)}"
        total += len(got)
    assert total > 1000
    hops = session.progress["hops"] if session.progress else []
    assert max(len(set(hop["queries"])) for hop in hops) > 64 * 2
