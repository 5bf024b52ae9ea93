"""Streams, their rows, and the ten good queries beside which everything hostile is tried.

Rows of a wave have keys of their own and come a minute after the wave before, so most joins stay within a wave.
Keys of rows that may or may not be used are negative; every good query answers its keys, and those are left out when
answers are compared.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from dovetail.query.stream_spec import StreamSpec
from dovetail.query.types import parse_column_type

STREAMS = ("a", "b", "c")
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
WAVE_S, ROWS_S = 60, 30
KEYS_A_WAVE = 1_000
CLOSING_KEY = -1

COLUMNS = {
    "k": "bigint",
    "v": "int",
    "s": "string",
    "odd": "string",
    "d": "double",
    "m": "decimal(10,2)",
    "big": "bigint",
    "day": "date",
    "t": "boolean",
    "u": "int",
    "ts": "timestamp",
}
"""No good query reads `u`: one that does has the streaming query start anew."""
SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        ("v", pa.int32()),
        ("s", pa.string()),
        ("odd", pa.string()),
        ("d", pa.float64()),
        ("m", pa.decimal128(10, 2)),
        ("big", pa.int64()),
        ("day", pa.date32()),
        ("t", pa.bool_()),
        ("u", pa.int32()),
        ("ts", pa.timestamp("us", tz="UTC")),
    ]
)
ODD = (
    *(
        "",
        " ",
        "1",
        "-0",
        "12.5",
        "1e3",
        "NaN",
        "true",
        "2024-02-30",
        "2026-01-01",
        "2026-01-01 10:11:12",
        "(",
        "[z-a]",
        "a{9}",
    ),
    *(
        "\\",
        "%_",
        "x\x00y",
        "\ufeff1",
        "\uff11\uff12",
        "\u0130\u00df\u0149",
        "e\u0301",
        "\U0001f468\u200d\U0001f469\u202e",
        "\n\r\t",
        "NULL",
        "'; --",
    ),
)
# None so large that two make an infinity: a sum that passes it and comes back depends on the order in Spark alone.
DOUBLES = (0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, 1e300, -1e-308, 3.0)
BIGS = (0, 1, -1, 2**63 - 1, -(2**63), 2**31, 10**18)
DAYS = (date(1, 1, 1), date(1582, 10, 15), date(1970, 1, 1), date(2026, 2, 28), date(9999, 12, 31))

NEAR = "b.ts BETWEEN a.ts - INTERVAL 10 SECONDS AND a.ts + INTERVAL 10 SECONDS"
GOOD_QUERIES = {
    "pairs": f"SELECT a.k, a.v, b.v AS w, b.m FROM a JOIN b ON a.k = b.k AND {NEAR}",
    "texts": f"SELECT a.k, b.k AS l, a.s || b.s AS x FROM a JOIN b ON a.s = b.s AND {NEAR} WHERE a.v = 2 AND b.v = 3",
    "groups": f"SELECT a.k, COUNT(*) AS n, SUM(b.v) AS x FROM a JOIN b ON a.k = b.k AND {NEAR} GROUP BY a.k",
    "windows": "SELECT k, COUNT(*) AS n, MAX(m) AS x FROM a GROUP BY k, window(ts, '10 seconds')",
    "single": "SELECT k, v + 1 AS w, odd, d, big, day, t FROM a WHERE s LIKE '%x%' AND v < 4",
    "outer": f"SELECT a.k, a.v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k AND {NEAR} AND b.v > 1",
    "three": f"SELECT a.k, c.v FROM a JOIN b ON a.k = b.k AND {NEAR} JOIN c ON b.k = c.k AND c.v = a.v AND "
    "c.ts BETWEEN b.ts AND b.ts + INTERVAL 10 SECONDS",
    "distinct": "SELECT DISTINCT k, s FROM c WHERE t",
    "anti": f"SELECT a.k, a.s FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.t AND {NEAR})",
    "band": "SELECT a.k, c.d FROM a JOIN c ON a.k = c.k AND ABS(a.m - c.m) <= 20 AND "
    "c.ts BETWEEN a.ts - INTERVAL 5 SECONDS AND a.ts",
}


def rows(stream: str, wave: int, count: int) -> pa.Table:
    """The good rows of a wave: the same in every run."""
    rng = Random(f"{stream} {wave}")
    start = BEGIN + timedelta(seconds=wave * WAVE_S)
    keys = max(1, count // 4)
    columns = {
        "k": [wave * KEYS_A_WAVE + rng.randrange(min(keys, KEYS_A_WAVE)) for _ in range(count)],
        "v": [rng.randrange(6) for _ in range(count)],
        "s": [
            None if rng.random() < 0.02 else "xyz"[rng.randrange(3)] * rng.randrange(4) + str(rng.randrange(9))
            for _ in range(count)
        ],
        "odd": [rng.choice(ODD) for _ in range(count)],
        "d": [rng.choice(DOUBLES) for _ in range(count)],
        "m": [Decimal(rng.randrange(10_000)) / 100 for _ in range(count)],
        "big": [rng.choice(BIGS) for _ in range(count)],
        "day": [rng.choice(DAYS) for _ in range(count)],
        "t": [rng.random() < 0.9 for _ in range(count)],
        "u": [rng.randrange(9) for _ in range(count)],
        "ts": [start + timedelta(milliseconds=rng.randrange(ROWS_S * 1_000)) for _ in range(count)],
    }
    return pa.table(columns, schema=SCHEMA)


def closing_rows(wave: int) -> pa.Table:
    """One row long after all others: it closes windows, and decides rows without a partner."""
    row = rows("a", wave, 1).to_pylist()[0]
    return pa.Table.from_pylist(
        [{**row, "k": CLOSING_KEY, "ts": BEGIN + timedelta(seconds=wave * WAVE_S + 3_600)}], SCHEMA
    )


class Folders:
    """Streams as folders to which files are added, and what of them is good."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.good: dict[str, list[Path]] = {stream: [] for stream in STREAMS}
        self._files = 0
        for stream in STREAMS:
            self.folder(stream)

    def folder(self, stream: str) -> Path:
        folder = self.root / stream
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def spec(self, stream: str, kind: str = "parquet") -> StreamSpec:
        columns = tuple((name, parse_column_type(text)) for name, text in COLUMNS.items())
        return StreamSpec(stream, columns, kind, {"path": str(self.folder(stream))}, "ts")

    def put(self, stream: str, content: bytes, suffix: str = "parquet") -> Path:
        """A file that appears whole."""
        self._files += 1
        hidden = self.root / f".{self._files}"
        hidden.write_bytes(content)
        return hidden.rename(self.folder(stream) / f"{self._files:06d}.{suffix}")

    def add_good(self, tables: dict[str, pa.Table]) -> None:
        """A file of good rows for each of these streams, as near to at once as files appear."""
        contents = {stream: parquet_bytes(table) for stream, table in tables.items()}
        for stream, content in contents.items():
            self.good[stream].append(self.put(stream, content))

    def add_wave(self, wave: int, count: int) -> dict[str, Path]:
        self.add_good({stream: rows(stream, wave, count) for stream in STREAMS})
        return {stream: self.good[stream][-1] for stream in STREAMS}


def parquet_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())
