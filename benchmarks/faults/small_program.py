"""A small program over three streams, in one process: queries of every kind, a few rows a batch."""

from __future__ import annotations

import datetime
import random
from pathlib import Path
from typing import Any

import pyarrow as pa

from dovetail.testing.local_session import LocalSession

SCHEMA = pa.schema([("k", pa.int32()), ("m", pa.int32()), ("v", pa.int32()), ("ts", pa.timestamp("us", tz="UTC"))])
STREAMS = ("a", "b", "c")
ROWS = 12
BEGIN = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)

NEAR = "BETWEEN a.ts - INTERVAL 6 SECONDS AND a.ts + INTERVAL 6 SECONDS"
QUERIES = {
    "pairs": f"SELECT a.k, a.v, b.v AS w FROM a JOIN b ON a.k = b.k AND b.ts {NEAR} WHERE a.v > 2",
    "chain": "SELECT a.v, b.v AS w, c.v AS x FROM a JOIN b ON a.k = b.k JOIN c ON b.m = c.m WITHIN 6 SECONDS",
    "windows": f"SELECT a.k, count(*) AS n, sum(b.v) AS s FROM a JOIN b ON a.k = b.k AND b.ts {NEAR} "
    "GROUP BY a.k, window(a.ts, '4 seconds')",
    "running": "SELECT a.m, count(*) AS n, max(a.v) AS top FROM a GROUP BY a.m",
    "padded": f"SELECT a.k, a.v, c.v AS x FROM a LEFT JOIN c ON a.k = c.k AND a.m = c.m AND a.v = c.v AND c.ts {NEAR}",
    "lonely": f"SELECT a.k, a.v FROM a LEFT ANTI JOIN b ON a.k = b.k AND a.m = b.m AND a.v = b.v AND b.ts {NEAR}",
    "above": f"SELECT a.v, b.v AS w FROM a JOIN b ON a.v > b.v AND b.ts {NEAR}",
    "dropped": f"SELECT a.k, b.v FROM a JOIN b ON a.k = b.k AND b.ts {NEAR}",
    "broken": f"SELECT 1 / (a.v - 3) AS q FROM a JOIN b ON a.k = b.k AND b.ts {NEAR}",
}
LATER = {
    "later": f"SELECT a.k, c.v FROM a JOIN c ON a.k = c.k AND c.ts {NEAR}",
    "pending": f"SELECT a.m, b.m AS n FROM a JOIN b ON a.k = b.k AND b.ts {NEAR}",
}


OWN_FILE_BYTES = 256


def rows_of(batch: int, stream: str) -> pa.Table:
    """The same for every version: drawn by Python's own generator."""
    chance = random.Random(f"{batch} {stream}")
    moments = [BEGIN + datetime.timedelta(seconds=3 * batch, milliseconds=chance.randrange(3000)) for _ in range(ROWS)]
    columns = [[chance.randrange(4) for _ in range(ROWS)] for _ in range(3)]
    arrays = [pa.array(values, field.type) for values, field in zip([*columns, moments], SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def open_session(root: Path, **options: Any) -> LocalSession:
    # Some answers get files of their own.
    session = LocalSession(root, own_file_bytes=OWN_FILE_BYTES, **options)
    for stream in STREAMS:
        session.create_stream(stream, SCHEMA, event_time="ts", lateness="1 second")
    return session


def push(session: LocalSession, batch: int) -> None:
    session.push({stream: rows_of(batch, stream) for stream in STREAMS}, splits=2)
