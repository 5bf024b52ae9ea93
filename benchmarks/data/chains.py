"""Data of the suite `adaptive`: the chain R(a), S(a, b), T(b, c), U(c) of CLASH section VII.B, a file a second.

Before the change, keys are uniform and a row finds a partner in another stream's window in about half of the cases.
Then all keys move to values that were never seen, so that no row from before meets one from after.

    8a  a row of S finds exactly PARTNERS rows of R that came before it, one of T as many of U;
        rows of S and T have no key in common any more, and rows of R and U come before their partners
    8b  R comes RATE_RATIO times as fast, and its rows meet those of S as before; hardly one of U finds one of T, so
        that the join of S, T and U is very small
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.data.workloads import EVENT_TIME_START_US, time_bound, write_files
from benchmarks.options import BenchError
from benchmarks.replay import StreamFolder
from dovetail.stats.catalog import StatsCatalog, edge_text

WINDOW_S = 5
PARTNERS = 100
RATE_RATIO = 100
RARE_SHARE = 0.01
COLUMNS_BY_STREAM: Mapping[str, tuple[str, ...]] = {"r": ("a",), "s": ("a", "b"), "t": ("b", "c"), "u": ("c",)}
MATCHES_BY_COLUMN: Mapping[str, float] = {"a": 0.45, "b": 0.55, "c": 0.45}
"""Partners of a row before the change; a little more by b, so that S meets R and T meets U first."""

AFTER = 1 << 40
"""Keys from here on came after the change."""

Keys = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ChainData:
    """`rows_per_second` of every stream; R's is more in 8b. The data change after `change_s` of all `seconds`."""

    rows_per_second: int
    is_b: bool
    change_s: int = 15
    seconds: int = 30
    seed: int = 1

    def __post_init__(self) -> None:
        if self.rows_per_second < PARTNERS:
            raise BenchError(f"{self.rows_per_second} rows a second are too few", hint="give more --rows")
        if self.rows_per_second % PARTNERS and not self.is_b:
            raise BenchError(f"{self.rows_per_second} rows a second cannot share keys by {PARTNERS}")

    def rate(self, stream: str) -> int:
        return self.rows_per_second * RATE_RATIO if self.is_b and stream == "r" else self.rows_per_second

    @property
    def total_rows(self) -> int:
        return self.seconds * sum(self.rate(stream) for stream in COLUMNS_BY_STREAM)

    def key_range(self, column: str) -> int:
        return round(WINDOW_S * self.rows_per_second / MATCHES_BY_COLUMN[column])

    def keys(self, stream: str, column: str, second: int) -> Keys:
        place = list(COLUMNS_BY_STREAM).index(stream)
        rng = np.random.default_rng((self.seed, self.is_b, place, ord(column), second))
        uniform: Keys = rng.integers(0, self.key_range(column), self.rate(stream))
        if second < self.change_s:
            return uniform
        if self.is_b:
            is_rare = (stream, column) == ("u", "c")
            return AFTER + uniform + np.where(is_rare & (rng.random(len(uniform)) >= RARE_SHARE), AFTER, 0)
        return AFTER + self._keys_of_8a(rng, stream, column, second)

    def _keys_of_8a(self, rng: np.random.Generator, stream: str, column: str, second: int) -> Keys:
        """The outer streams' rows of a second share keys of its own, which the inner ones use in the seconds after."""
        row_count = self.rows_per_second
        numbers = np.arange(row_count, dtype=np.int64)
        if column == "b":
            return numbers + (row_count if stream == "t" else 0)
        keys_per_second = row_count // PARTNERS
        if stream in ("r", "u"):
            return second * keys_per_second + numbers % keys_per_second
        oldest, newest = max(self.change_s, second - WINDOW_S + 1), max(self.change_s, second - 1)
        of_second = rng.integers(oldest, newest + 1, row_count)
        keys: Keys = of_second * keys_per_second + rng.integers(0, keys_per_second, row_count)
        return keys


def write_chain(data: ChainData, folder: Path) -> list[StreamFolder]:
    streams = []
    for stream, columns in COLUMNS_BY_STREAM.items():
        write_files(folder / stream, (rows_of_second(data, stream, second) for second in range(data.seconds)))
        ddl = ", ".join(("id bigint", "ts timestamp", *(f"{column} bigint" for column in columns)))
        streams.append(StreamFolder(stream, folder / stream, ddl, "ts"))
    return streams


def rows_of_second(data: ChainData, stream: str, second: int) -> pa.Table:
    row_count = data.rate(stream)
    time_us = EVENT_TIME_START_US + second * 1_000_000 + np.arange(row_count, dtype=np.int64) * 1_000_000 // row_count
    return pa.table(
        {
            "id": pa.array(np.arange(row_count, dtype=np.int64) + second * row_count),
            "ts": pa.array(time_us).cast(pa.timestamp("us", tz="UTC")),
            **{column: pa.array(data.keys(stream, column, second)) for column in COLUMNS_BY_STREAM[stream]},
        }
    )


def chain_sql() -> str:
    bounds = (f"r.a = s.a AND {time_bound('r', 's', WINDOW_S)}", f"s.b = t.b AND {time_bound('s', 't', WINDOW_S)}")
    return (
        "SELECT r.id AS r_id, s.id AS s_id, t.id AS t_id, u.id AS u_id FROM r "
        f"JOIN s ON {bounds[0]} JOIN t ON {bounds[1]} JOIN u ON t.c = u.c AND {time_bound('t', 'u', WINDOW_S)}"
    )


def figures_before(data: ChainData) -> StatsCatalog:
    """What is true of the data up to the change."""
    edges = {"a": ("r.a", "s.a"), "b": ("s.b", "t.b"), "c": ("t.c", "u.c")}
    return StatsCatalog(
        rows_in_window={stream: float(WINDOW_S * data.rate(stream)) for stream in COLUMNS_BY_STREAM},
        key_match={edge_text(*sides): 1 / data.key_range(column) for column, sides in edges.items()},
    )
