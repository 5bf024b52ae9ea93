"""A source task holds only so many bytes of rows; what it received before goes to buckets of its own."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from dovetail.testing.local_session import LocalSession

ROWS = 20
SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us", tz="UTC"))])


@pytest.mark.parametrize(("piece_bytes", "buckets"), [(1, 10), (3 * 2 * 16, 4), (1 << 20, 1)])
def test_pieces_join_as_one(tmp_path: Path, piece_bytes: int, buckets: int) -> None:
    session = LocalSession(tmp_path, piece_bytes=piece_bytes, rows_per_chunk=2, merge_fanout=100)
    for name in "ab":
        session.create_stream(name, SCHEMA, event_time="ts", lateness="1 second")
    session.create_query("SELECT a.k FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts", "q")
    table = pa.table({"k": range(ROWS), "ts": pa.array([0] * ROWS).cast(SCHEMA.field("ts").type)}, schema=SCHEMA)
    session.push({"a": table, "b": table})
    assert sorted(session.results("q").column("k").to_pylist()) == list(range(ROWS))
    assert session.progress is not None
    assert {store["name"]: store["numBuckets"] for store in session.progress["stores"]} == {"a": buckets, "b": buckets}
    assert session.progress["numInputRows"] == 2 * ROWS
