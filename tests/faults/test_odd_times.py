"""Event times at and beyond the ends of the calendar: the session goes on, and the other rows are answered."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from dovetail.testing.local_session import LocalSession

TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema([("k", pa.int64()), ("ts", TIME)])
USUAL_US = 1_704_067_200_000_000
NEAR = "b.ts BETWEEN a.ts - INTERVAL 10 SECONDS AND a.ts + INTERVAL 10 SECONDS"


def _rows(*times_us: int) -> pa.Table:
    times = pa.array(times_us, pa.int64()).cast(TIME)
    return pa.table({"k": range(len(times_us)), "ts": times}, schema=SCHEMA)


@pytest.mark.parametrize(
    "odd_us",
    [253_402_300_800_000_000, 9_100_000_000_000_000_000, -62_135_596_800_000_001, -9_200_000_000_000_000_000],
    ids=["year 10000", "year 290000", "year 0", "year -290000"],
)
def test_a_row_of_an_odd_time_stops_nobody(odd_us: int, tmp_path: Path) -> None:
    with LocalSession(tmp_path) as session:
        for name in ("a", "b"):
            session.create_stream(name, SCHEMA, "ts")
        session.create_query(f"SELECT a.k, a.ts FROM a JOIN b ON a.k = b.k AND {NEAR}", "pairs")
        session.create_query(f"SELECT a.k, b.k AS o FROM a LEFT JOIN b ON a.k = b.k AND {NEAR}", "outer")
        session.create_query(
            f"SELECT a.k, COUNT(*) AS n FROM a JOIN b ON a.k = b.k AND {NEAR} GROUP BY a.k, window(a.ts, '10 seconds')",
            "windows",
        )
        session.create_query(f"SELECT CAST(a.ts AS STRING) AS t FROM a JOIN b ON a.k = b.k AND {NEAR}", "texts")
        session.push({"a": _rows(USUAL_US, odd_us), "b": _rows(USUAL_US, odd_us)})
        assert session.results("pairs").column("k").to_pylist() == [0]
        assert [row.values["k"] for row in session.bad_rows("a")] == [1]
        assert session.progress is not None
        session.push({"a": _rows(USUAL_US), "b": _rows(USUAL_US)})
        assert session.engine.head.batch == 1
