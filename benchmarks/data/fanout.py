"""A join with very many results per input row: two streams with few keys, of which only counts and sums are asked.

Each key has equally many rows of both streams, so that an input row has `RESULTS_PER_ROW` results on average; batches
bring equal parts of every key. Groups are the regions of one stream's rows, and are kept up to date with every batch.

Amounts are whole numbers, prices decimals with two places, weights doubles that are multiples of 1/1024: their sums
are exact in whatever order they are added, so that all systems must agree on every digit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.data.folder_case import FolderCase
from benchmarks.data.workloads import write_files
from benchmarks.options import BenchError
from benchmarks.replay import StreamFolder

RESULTS_PER_ROW = 1_000
ROWS_PER_KEY = 2 * RESULTS_PER_ROW
"""Of one stream: as many squared are the key's results, from twice as many rows."""

REGIONS = 8
SCHEMA_DDL = "k int, region int, amount bigint, price decimal(9, 2), weight double"
COUNT_AND_SUM = "COUNT(*) AS pairs, SUM(a.amount) AS amount"
ALL_SUMS = f"{COUNT_AND_SUM}, SUM(b.amount) AS b_amount, SUM(b.price) AS price, SUM(a.weight) AS weight"


@dataclass(frozen=True)
class Fanout:
    """`keys` keys with `rows_per_key` rows of each of the two streams, dealt out to batches."""

    keys: int
    batches: int
    rows_per_key: int = ROWS_PER_KEY
    seed: int = 1

    def __post_init__(self) -> None:
        if self.keys < 1 or self.rows_per_key % self.batches:
            raise BenchError(f"{self.rows_per_key} rows of a key do not fill {self.batches} batches")

    @property
    def rows(self) -> int:
        return 2 * self.keys * self.rows_per_key

    @property
    def results(self) -> int:
        return self.keys * self.rows_per_key**2


def fanout_of(rows: int, batches: int, seed: int) -> Fanout:
    """Whole keys, at least one, in at most so many rows."""
    return Fanout(max(1, rows // (2 * ROWS_PER_KEY)), batches, seed=seed)


def write_fanout(data: Fanout, folder: Path) -> tuple[StreamFolder, ...]:
    for place, stream in enumerate("ab"):
        write_files(folder / stream, _tables(data, place))
    return tuple(StreamFolder(stream, folder / stream, SCHEMA_DDL) for stream in "ab")


def fanout_case(name: str, data: Fanout, streams: tuple[StreamFolder, ...], aggregates: str) -> FolderCase:
    sql = f"SELECT a.region AS region, {aggregates} FROM a JOIN b ON a.k = b.k GROUP BY a.region"
    return FolderCase(name, streams, data.rows, sql, group_keys=("region",), crossing=("k", "region", "amount"))


def _tables(data: Fanout, place: int) -> Iterator[pa.Table]:
    rng = np.random.default_rng((data.seed, place))
    rows_per_batch = data.keys * data.rows_per_key // data.batches
    for _ in range(data.batches):
        yield pa.table(
            {
                "k": pa.array(rng.permutation(np.arange(rows_per_batch, dtype=np.int32) % data.keys)),
                "region": pa.array(rng.integers(0, REGIONS, rows_per_batch, dtype=np.int32)),
                "amount": pa.array(rng.integers(0, 1_000, rows_per_batch)),
                "price": _prices(rng.integers(1, 100_000, rows_per_batch)),
                "weight": pa.array(rng.integers(0, 1 << 20, rows_per_batch) / 1024),
            }
        )


def _prices(cents: npt.NDArray[np.int64]) -> pa.Array:
    """As decimal(9, 2): the same digits, the point two places to the left."""
    words = np.zeros((len(cents), 2), dtype=np.int64)
    words[:, 0] = cents
    return pa.Array.from_buffers(pa.decimal128(9, 2), len(cents), [None, pa.py_buffer(words.tobytes())])
