"""A join with very many results per input row: two streams whose rows of a window share few keys.

In every window each key has equally many rows of both streams, so that an input row has exactly `RESULTS_PER_ROW`
results on average. Only counts and sums per window are asked. Two rows at the end, far later than all others, let
every window close in systems that wait for their watermark; their own windows stay open.

Amounts are whole numbers, prices decimals with two places, weights doubles that are multiples of 1/1024: their sums
are exact in whatever order they are added, so that all systems must agree on every digit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from dovetail.bench.folder_case import FolderCase
from dovetail.bench.options import BenchError
from dovetail.bench.replay import StreamFolder
from dovetail.bench.workloads import EVENT_TIME_START_US, write_files

RESULTS_PER_ROW = 1_000
ROWS_PER_KEY = 2 * RESULTS_PER_ROW
"""Of one stream, in one window: as many squared are the key's results, from twice as many rows."""

WINDOW_S = 10
CLOSING_FILES = 2
"""Spark moves its watermark after a batch and needs another one to answer."""

SCHEMA_DDL = "ts timestamp, k int, amount bigint, price decimal(9, 2), weight double"
COUNT_AND_SUM = "COUNT(*) AS pairs, SUM(a.amount) AS amount"
ALL_SUMS = f"{COUNT_AND_SUM}, SUM(b.price) AS price, SUM(a.weight) AS weight"


@dataclass(frozen=True)
class Fanout:
    """`rows` of both streams together, as many as fill whole keys; `files_per_window` batches bring a window."""

    rows: int
    windows: int = 4
    files_per_window: int = 2
    rows_per_key: int = ROWS_PER_KEY
    seed: int = 1

    def __post_init__(self) -> None:
        if self.rows % (2 * self.windows * self.rows_per_key):
            raise BenchError(f"{self.rows} rows do not fill {self.windows} windows of whole keys")
        if self.rows_per_key % self.files_per_window:
            raise BenchError(f"{self.rows_per_key} rows of a key do not fill {self.files_per_window} files")

    @property
    def keys(self) -> int:
        return self.rows // (2 * self.windows * self.rows_per_key)

    @property
    def results(self) -> int:
        return self.windows * self.keys * self.rows_per_key**2

    @property
    def total_rows(self) -> int:
        """With the rows that close the windows."""
        return self.rows + 2 * CLOSING_FILES


def whole_rows(rows: int, windows: int = 4, rows_per_key: int = ROWS_PER_KEY) -> int:
    """At most so many rows, of whole keys; at least one key."""
    step = 2 * windows * rows_per_key
    return max(1, rows // step) * step


def write_fanout(data: Fanout, folder: Path) -> tuple[StreamFolder, ...]:
    streams = []
    for place, stream in enumerate("ab"):
        write_files(folder / stream, _tables(data, place))
        streams.append(StreamFolder(stream, folder / stream, SCHEMA_DDL, "ts"))
    return tuple(streams)


def fanout_case(
    name: str, data: Fanout, streams: tuple[StreamFolder, ...], aggregates: str = COUNT_AND_SUM
) -> FolderCase:
    windowed = [
        f"(SELECT window(ts, '{WINDOW_S} seconds') AS w, k, amount, price, weight FROM {s}) AS {s}" for s in "ab"
    ]
    sql = (
        f"SELECT a.w.start AS started, {aggregates} FROM {windowed[0]} JOIN {windowed[1]} "
        "ON a.k = b.k AND a.w = b.w GROUP BY a.w"
    )
    bucket = f"time_bucket(INTERVAL {WINDOW_S} SECONDS, {{}}.ts)"
    last_us = EVENT_TIME_START_US + data.windows * WINDOW_S * 1_000_000
    duckdb_sql = (
        f"SELECT {bucket.format('a')} AS started, {aggregates} FROM a JOIN b "
        f"ON a.k = b.k AND {bucket.format('a')} = {bucket.format('b')} "
        f"WHERE a.ts < make_timestamp({last_us}) GROUP BY 1"
    )
    return FolderCase(
        name, streams, data.total_rows, sql, duckdb_sql, answers_groups=True, crossing=("ts", "k", "amount")
    )


def _tables(data: Fanout, place: int) -> Iterator[pa.Table]:
    rng = np.random.default_rng((data.seed, place))
    rows_per_file = data.keys * data.rows_per_key // data.files_per_window
    file_us = WINDOW_S * 1_000_000 // data.files_per_window
    for number in range(data.windows * data.files_per_window):
        keys = rng.permutation(np.arange(rows_per_file, dtype=np.int32) % data.keys)
        times_us = EVENT_TIME_START_US + number * file_us + np.sort(rng.integers(0, file_us, rows_per_file))
        yield _table(times_us, keys, rng)
    for number in range(CLOSING_FILES):
        last_us = EVENT_TIME_START_US + (data.windows + 10 * (number + 1)) * WINDOW_S * 1_000_000
        # Keys of their own: rows that close windows find no partner.
        yield _table(np.array([last_us]), np.array([data.keys + place], dtype=np.int32), rng)


def _table(times_us: np.ndarray, keys: np.ndarray, rng: np.random.Generator) -> pa.Table:
    count = len(keys)
    cents = rng.integers(1, 100_000, count)
    return pa.table(
        {
            "ts": pa.array(times_us).cast(pa.timestamp("us", tz="UTC")),
            "k": pa.array(keys),
            "amount": pa.array(rng.integers(0, 1_000, count)),
            "price": _decimals(cents),
            "weight": pa.array(rng.integers(0, 1 << 20, count) / 1024),
        }
    )


def _decimals(cents: np.ndarray) -> pa.Array:
    """Cents as decimal(9, 2): the same digits, the point two places to the left."""
    words = np.zeros((len(cents), 2), dtype=np.int64)
    words[:, 0] = cents
    kind = pa.decimal128(9, 2)
    return pa.Array.from_buffers(kind, len(cents), [None, pa.py_buffer(words.tobytes())])
