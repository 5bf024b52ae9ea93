"""Good queries beside a culprit: what they answer is what they answer without it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from dovetail.engine.control.registry import QueryRecord, QueryState
from dovetail.testing.local_session import LocalSession

SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        ("s", pa.string()),
        ("v", pa.int32()),
        ("d", pa.float64()),
        ("m", pa.decimal128(10, 2)),
        ("ts", pa.timestamp("us", "UTC")),
    ]
)
NEAR = "b.ts BETWEEN a.ts - INTERVAL 10 SECONDS AND a.ts + INTERVAL 10 SECONDS"
NEIGHBOURS = {
    "pairs": f"SELECT a.k, b.v, a.s || b.s AS t FROM a JOIN b ON a.k = b.k AND {NEAR}",
    "texts": f"SELECT a.s, b.k FROM a JOIN b ON a.s = b.s AND {NEAR} WHERE a.v > 0",
    "groups": f"SELECT a.k, SUM(b.v) AS n FROM a JOIN b ON a.k = b.k AND {NEAR} GROUP BY a.k",
    "single": "SELECT k, v + 1 AS w FROM a WHERE s LIKE '%x%'",
    "outer": f"SELECT a.k, b.v FROM a LEFT JOIN b ON a.k = b.k AND {NEAR}",
    "three": f"SELECT a.k, c.v FROM a JOIN b ON a.k = b.k AND {NEAR} JOIN c ON b.v = c.v AND"
    " c.ts BETWEEN b.ts - INTERVAL 10 SECONDS AND b.ts + INTERVAL 10 SECONDS",
}


def rows(*seeds: int) -> pa.Table:
    start = datetime(2024, 1, 1, tzinfo=UTC)
    return pa.table(
        {
            "k": [seed % 3 for seed in seeds],
            "s": [None if seed % 7 == 6 else "xyz"[seed % 3] * (seed % 4) for seed in seeds],
            "v": [seed % 5 - 1 for seed in seeds],
            "d": [seed / 3 for seed in seeds],
            "m": [Decimal(seed) for seed in seeds],
            "ts": [start + timedelta(seconds=seed) for seed in seeds],
        },
        schema=SCHEMA,
    )


BATCHES = [
    {"a": rows(*range(9)), "b": rows(*range(1, 9)), "c": rows(*range(9))},
    {"a": rows(*range(9, 18)), "b": rows(*range(8, 18)), "c": rows(*range(9, 18))},
    {"a": rows(*range(40, 44)), "b": rows(*range(40, 45)), "c": rows(*range(40, 43))},
]
Answers = dict[str, list[str]]


def run(
    folder: Path, culprit: str | None, *, after: Callable[[LocalSession], object] = lambda _: None, at: int = 0
) -> tuple[Answers, QueryRecord | None]:
    """All batches with the neighbours and, from batch `at` on, the culprit; `after` its creation something is done."""
    with LocalSession(folder) as session:
        for name in ("a", "b", "c"):
            session.create_stream(name, SCHEMA, "ts")
        for name, sql in NEIGHBOURS.items():
            session.create_query(sql, name)
        query = None
        for batch, tables in enumerate(BATCHES):
            if culprit is not None and batch == at:
                query = session.create_query(culprit, "culprit")
                after(session)
            session.push(tables)
        answers = {name: sorted(map(str, session.results(name).to_pylist())) for name in NEIGHBOURS}
        return answers, None if query is None else query.status


def is_stopped(record: QueryRecord | None) -> bool:
    return record is not None and record.state is QueryState.QUARANTINED
