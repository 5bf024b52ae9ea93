"""Data and queries of the benchmarks: deterministic, and the same files for every system.

A workload is a folder per stream with one Parquet file per second of event time (or per few seconds), as
`id bigint, ts timestamp, x0..x5 int` (AJoin's six attributes, uniform in a range each). File times
grow with event time, so that Spark's file source takes them in order, one or more seconds a batch.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.options import BenchError

ATTRIBUTE_COUNT = 6
SCHEMA_DDL = "id bigint, ts timestamp, " + ", ".join(f"x{i} int" for i in range(ATTRIBUTE_COUNT))
EVENT_TIME_START_US = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z
FILE_TIME_START_S = 1_767_225_600
LATENESS = "1 second"
MAX_KEY_RANGE = 2**31 - 1
STREAM_NAMES = ("a", "b", "c", "d", "e")


@dataclass(frozen=True)
class Workload:
    """The recipe of the data; `key_ranges[i]` is the number of values that attribute `x<i>` takes."""

    streams: tuple[str, ...]
    seconds: int
    rows_per_second: int
    key_ranges: tuple[int, ...]
    seed: int = 1
    seconds_per_file: int = 1

    def __post_init__(self) -> None:
        if len(self.key_ranges) != ATTRIBUTE_COUNT:
            raise BenchError(f"a workload has {ATTRIBUTE_COUNT} attributes, not {len(self.key_ranges)}")
        if not all(0 < key_range <= MAX_KEY_RANGE for key_range in self.key_ranges):
            raise BenchError("a key range must be positive and fit in an int", hint="use fewer rows or shorter windows")
        if self.seconds < 1 or self.rows_per_second < 1:
            raise BenchError("a workload needs at least one row and one second", hint="give more --rows")
        if self.seconds % self.seconds_per_file:
            raise BenchError(f"{self.seconds} s do not fill files of {self.seconds_per_file} s")

    @property
    def total_rows(self) -> int:
        return len(self.streams) * self.seconds * self.rows_per_second

    @property
    def file_count(self) -> int:
        return self.seconds // self.seconds_per_file

    def files_per_batch(self, seconds_per_batch: int) -> int:
        if seconds_per_batch % self.seconds_per_file:
            raise BenchError(f"a batch of {seconds_per_batch} s is not made of files of {self.seconds_per_file} s")
        return seconds_per_batch // self.seconds_per_file


@dataclass(frozen=True)
class StreamFiles:
    """A workload as files. `prefix` gives the first seconds of it as a workload of its own."""

    workload: Workload
    folder: Path

    def path(self, stream: str) -> Path:
        return self.folder / stream

    def only(self, streams: tuple[str, ...]) -> StreamFiles:
        return StreamFiles(replace(self.workload, streams=streams), self.folder)

    def prefix(self, seconds: int, folder: Path) -> StreamFiles:
        workload = replace(self.workload, seconds=min(seconds, self.workload.seconds))
        for stream in workload.streams:
            (folder / stream).mkdir(parents=True)
            for file_number in range(workload.file_count):
                name = file_name(file_number)
                os.link(self.path(stream) / name, folder / stream / name)
        return StreamFiles(workload, folder)


def write_workload(workload: Workload, folder: Path) -> StreamFiles:
    for stream_idx, stream in enumerate(workload.streams):
        tables = (rows_of_file(workload, stream_idx, number) for number in range(workload.file_count))
        write_files(folder / stream, tables)
    return StreamFiles(workload, folder)


def write_files(folder: Path, tables: Iterable[pa.Table]) -> None:
    """A file per table, each younger than the one before: Spark's file source takes them in this order."""
    folder.mkdir(parents=True)
    for number, table in enumerate(tables):
        path = folder / file_name(number)
        pq.write_table(table, path)
        os.utime(path, (FILE_TIME_START_S + number, FILE_TIME_START_S + number))


def file_name(file_number: int) -> str:
    return f"part-{file_number:06d}.parquet"


def rows_of_file(workload: Workload, stream_idx: int, file_number: int) -> pa.Table:
    random_numbers = np.random.default_rng((workload.seed, stream_idx, file_number))
    row_count = workload.rows_per_second * workload.seconds_per_file
    duration_us = 1_000_000 * workload.seconds_per_file
    first_id = file_number * row_count
    offset_us = np.sort(random_numbers.integers(0, duration_us, row_count))
    event_time_us = EVENT_TIME_START_US + file_number * duration_us + offset_us
    columns: dict[str, pa.Array] = {
        "id": pa.array(np.arange(first_id, first_id + row_count, dtype=np.int64)),
        "ts": pa.array(event_time_us).cast(pa.timestamp("us", tz="UTC")),
    }
    for i, key_range in enumerate(workload.key_ranges):
        columns[f"x{i}"] = pa.array(random_numbers.integers(0, key_range, row_count, dtype=np.int32))
    return pa.table(columns)


def time_bound(earlier: str, later: str, window_s: int) -> str:
    """`later` within `window_s` seconds before or after `earlier`, in the SQL that all systems share."""
    interval = f"INTERVAL {window_s} SECONDS"
    return f"{later}.ts BETWEEN {earlier}.ts - {interval} AND {earlier}.ts + {interval}"


def interval_join(window_s: int, attribute: int = 0) -> str:
    """The two-way join of the suites `single`, `window` and `smallest`."""
    key = f"x{attribute}"
    return (
        f"SELECT a.id AS a_id, b.id AS b_id, a.ts AS a_ts, b.ts AS b_ts, a.{key} AS k "
        f"FROM a JOIN b ON a.{key} = b.{key} AND {time_bound('a', 'b', window_s)}"
    )


@dataclass(frozen=True)
class ChainHop:
    """One hop of a chain: `stored.x<stored_attribute> = probe.x<probe_attribute>`, times within the window."""

    probe: str
    stored: str
    probe_attribute: int
    stored_attribute: int


def chain_hops(relation_count: int) -> tuple[ChainHop, ...]:
    """Neighbours joined on a pair of attributes of their own, so that no hop can reuse another's partitioning."""
    names = STREAM_NAMES[:relation_count]
    return tuple(
        ChainHop(probe, stored, (2 * i) % ATTRIBUTE_COUNT, (2 * i + 1) % ATTRIBUTE_COUNT)
        for i, (probe, stored) in enumerate(pairwise(names))
    )


def chain_join(relation_count: int, window_s: int) -> str:
    """a to b to c ... as one flat join: what Dovetail and DuckDB run."""
    hops = chain_hops(relation_count)
    output = ", ".join(f"{name}.id AS {name}_id" for name in STREAM_NAMES[:relation_count])
    joins = "".join(
        f" JOIN {hop.stored} ON {hop.probe}.x{hop.probe_attribute} = {hop.stored}.x{hop.stored_attribute}"
        f" AND {time_bound(hop.probe, hop.stored, window_s)}"
        for hop in hops
    )
    return f"SELECT {output} FROM a{joins}"


def ajoin_queries(count: int, key_range: int, seed: int) -> dict[str, str]:
    """AJoin's two-way template: `count` distinct queries, the first m of them the same for every count.

    A query joins a random attribute of a with one of b, selects about half of each stream by a constant
    that no other query uses, and has a window of 1, 2 or 3 s.
    """
    lower, upper = int(key_range * 0.4), int(key_range * 0.6)
    if upper - lower < 4 * count:  # room enough that drawing distinct constants stays cheap
        raise BenchError(f"{count} queries need more constants than {lower} to {upper}", hint="give more --rows")
    random_numbers = random.Random(seed)
    used: set[int] = set()
    return {f"q{i:03d}": _ajoin_query(lower, upper, used, random_numbers) for i in range(count)}


def _ajoin_query(lower: int, upper: int, used: set[int], random_numbers: random.Random) -> str:
    a_key, b_key, a_chosen, b_chosen = (random_numbers.randrange(ATTRIBUTE_COUNT) for _ in range(4))
    a_sign, b_sign = (random_numbers.choice("<>") for _ in range(2))
    a_constant, b_constant = (_unused_constant(lower, upper, used, random_numbers) for _ in range(2))
    window_s = random_numbers.choice((1, 2, 3))
    return (
        f"SELECT a.id AS a_id, b.id AS b_id FROM a JOIN b ON a.x{a_key} = b.x{b_key} "
        f"AND {time_bound('a', 'b', window_s)} "
        f"WHERE a.x{a_chosen} {a_sign} {a_constant} AND b.x{b_chosen} {b_sign} {b_constant}"
    )


def _unused_constant(lower: int, upper: int, used: set[int], random_numbers: random.Random) -> int:
    constant = random_numbers.randrange(lower, upper)
    while constant in used:
        constant = random_numbers.randrange(lower, upper)
    used.add(constant)
    return constant
