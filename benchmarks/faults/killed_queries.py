"""The queries of programs whose processes are killed, the rows they join, and what batch SQL answers to them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

STREAMS = ("a", "b")
DDL = "id BIGINT, ts TIMESTAMP, k INT, x INT, y INT"
LATENESS = "1 second"
BEGIN_US, SECOND_US, HOUR_US = 1_700_000_000_000_000, 1_000_000, 3_600_000_000
CLOSING_FILES = 2
"""After the last rows these come, hours later and alone: then the watermarks have passed all others."""
NOBODY = -1

NEAR = "b.ts BETWEEN a.ts - INTERVAL 2 SECONDS AND a.ts + INTERVAL 2 SECONDS"
QUERIES = {
    "pairs": f"SELECT a.id AS a_id, b.id AS b_id FROM a JOIN b ON a.k = b.k AND {NEAR} WHERE a.x > 20",
    "sums": f"SELECT a.x % 7 AS g, count(*) AS n, sum(b.x) AS s FROM a JOIN b ON a.k = b.k AND {NEAR} GROUP BY a.x % 7",
    "padded": f"SELECT a.id AS a_id, b.id AS b_id FROM a LEFT JOIN b ON a.k = b.k AND a.x = b.x AND {NEAR} "
    "WHERE a.k >= 0",
    "windows": f"SELECT a.k AS k, count(*) AS n FROM a JOIN b ON a.k = b.k AND a.x = b.x AND {NEAR} "
    "GROUP BY a.k, window(a.ts, '4 seconds')",
}
_BATCH_SQL = {
    "windows": QUERIES["windows"].replace("window(a.ts, '4 seconds')", "time_bucket(INTERVAL 4 SECONDS, a.ts)")
}
EXTRAS = (
    f"SELECT a.id AS a_id, b.id AS b_id FROM a JOIN b ON a.k = b.k AND a.x < b.x AND {NEAR}",
    # A column that no other query needs: Spark's query starts anew between two batches to read it.
    f"SELECT a.id AS a_id, b.id AS b_id FROM a JOIN b ON a.y = b.y AND {NEAR}",
    (
        "SELECT a.id AS a_id, b.id AS b_id, c.id AS c_id FROM a JOIN b ON a.k = b.k "
        "AND b.ts BETWEEN a.ts - INTERVAL 1 SECOND AND a.ts + INTERVAL 1 SECOND "
        "JOIN a c ON b.x = c.x AND c.ts BETWEEN b.ts - INTERVAL 1 SECOND AND b.ts WHERE c.k < 40"
    ),
)
"""Created and dropped while batches run."""

Rows = Counter[tuple[Any, ...]]


@dataclass(frozen=True)
class Difference:
    """Rows that should be among the answers and are not, and rows that should not be."""

    lost: int = 0
    doubled: int = 0

    @staticmethod
    def of(found: Rows, expected: Rows) -> Difference:
        return Difference((expected - found).total(), (found - expected).total())

    def __add__(self, other: Difference) -> Difference:
        return Difference(self.lost + other.lost, self.doubled + other.doubled)


class RowFiles:
    """A file a stream and batch, as many as are asked for; those of two runs with one seed are equal."""

    def __init__(self, folder: Path, rows: int, seed: int) -> None:
        self.folder = folder
        self.count = 0
        self._rows = rows
        self._chance = np.random.default_rng(seed)
        for stream in STREAMS:
            (folder / stream).mkdir(parents=True)

    def add(self, files: int) -> None:
        for _ in range(files):
            self._write(self._rows, self.count * SECOND_US, is_closing=False)

    def close(self) -> None:
        for hour in range(1, CLOSING_FILES + 1):
            self._write(1, hour * HOUR_US + self.count * SECOND_US, is_closing=True)

    def _write(self, rows: int, begin_us: int, *, is_closing: bool) -> None:
        for place, stream in enumerate(STREAMS):
            keys = np.full(rows, NOBODY - place) if is_closing else self._chance.integers(0, max(rows, 1), rows)
            times = BEGIN_US + begin_us + np.sort(self._chance.integers(0, SECOND_US, rows))
            table = pa.table(
                {
                    "id": pa.array(self.count * 1_000_000 + np.arange(rows)),
                    "ts": pa.array(times).view(pa.timestamp("us", tz="UTC")),
                    "k": pa.array(keys.astype(np.int32)),
                    "x": pa.array(self._chance.integers(0, 200, rows).astype(np.int32)),
                    "y": pa.array(keys.astype(np.int32)),
                }
            )
            path = self.folder / stream / f"{self.count:05d}.parquet"
            pq.write_table(table, path)
            os.utime(path, (1_700_000_000 + self.count,) * 2)
        self.count += 1


class BatchSql:
    """What DuckDB answers over the files, or over those of some batches only."""

    def __init__(self, files: RowFiles, batch_by_file: Mapping[tuple[str, int], int]) -> None:
        self._oracle = duckdb.connect()
        for stream in STREAMS:
            batches = pa.table(
                {
                    "file": pa.array([file for name, file in batch_by_file if name == stream], pa.int64()),
                    "batch": pa.array([b for (name, _), b in batch_by_file.items() if name == stream], pa.int64()),
                }
            )
            self._oracle.register(f"batches_of_{stream}", batches)
            self._oracle.execute(
                f"CREATE TABLE all_{stream} AS SELECT r.*, o.batch FROM '{files.folder}/{stream}/*.parquet' r "
                f"LEFT JOIN batches_of_{stream} o ON o.file = r.id // 1000000"
            )

    def answers(self, name: str, sql: str) -> Rows:
        return self._rows(_BATCH_SQL.get(name, sql), "true")

    def answers_between(self, sql: str, complete_from: int, created: int, dropped: int | None) -> Rows:
        """Of a query that took effect with batch `created` and uses rows of `complete_from` or later."""
        until = "true" if dropped is None else f"batch < {dropped}"
        whole = self._rows(sql, f"batch >= {complete_from} AND {until}")
        return whole - self._rows(sql, f"batch >= {complete_from} AND batch < {created}")

    def _rows(self, sql: str, condition: str) -> Rows:
        for stream in STREAMS:
            self._oracle.execute(f"CREATE OR REPLACE VIEW {stream} AS SELECT * FROM all_{stream} WHERE {condition}")
        return Counter(self._oracle.execute(sql).fetchall())


def rows_of(path: Path) -> Rows:
    columns: Iterable[Any] = pq.read_table(path).columns
    return Counter(zip(*(column.to_pylist() for column in columns), strict=True))
