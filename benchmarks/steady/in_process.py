"""A point of `steady` in this process, without Spark: CPU a batch and by part, in seconds rather than minutes.

    python -m benchmarks.steady.in_process QUERIES ROWS BATCHES [--mixed] [--profile]

Every batch is a line; then come medians of the batches after warm-up, and whether sampled answers equal DuckDB's.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console

from benchmarks.data.workloads import LATENESS, STREAM_NAMES, rows_of_file
from benchmarks.measure import median
from benchmarks.steady.check import chosen_queries, views_of_tables, wrong_answers
from benchmarks.steady.point import Point
from dovetail.testing.local_session import LocalSession

KEY_GROUPS = 128
PROFILED_LINES = 45


@dataclass(frozen=True)
class LocalBatch:
    """`cpu_s` is of the whole process, driver and tasks alike; parts are by the wall."""

    cpu_s: float
    results: int
    buckets: int
    parts_ms: Mapping[str, float]


def main(arguments: Sequence[str]) -> int:
    given = _parse(arguments)
    point = Point(
        given.queries, given.rows, window_scale=given.window_scale, is_mixed=given.mixed, merges=not given.no_merges
    )
    console = Console()
    profile = cProfile.Profile() if given.profile else None
    with tempfile.TemporaryDirectory(prefix="dovetail-steady-") as folder:
        batches, is_equal = run_in_process(point, given, Path(folder), console, profile)
    _print_medians(console, point, batches[given.warm_up :])
    if profile is not None:
        pstats.Stats(profile).sort_stats("tottime").print_stats(PROFILED_LINES)
    return 0 if is_equal else 1


def run_in_process(
    point: Point, given: argparse.Namespace, folder: Path, console: Console, profile: cProfile.Profile | None
) -> tuple[list[LocalBatch], bool]:
    queries = point.query_by_name(given.seed)
    workload = point.workload(given.batches, given.seed)
    kept: dict[str, list[pa.Table]] = {name: [] for name in STREAM_NAMES}
    batches: list[LocalBatch] = []
    with LocalSession(folder, partitions=given.partitions, key_groups=KEY_GROUPS, **point.tuning) as session:
        schema = rows_of_file(workload, 0, 0).schema
        for name in STREAM_NAMES:
            session.create_stream(name, schema, "ts", LATENESS)
        began = time.process_time()
        for name, query in queries.items():
            session.create_query(query.sql, name)
        console.print(f"{len(queries)} queries created: {time.process_time() - began:.2f} s CPU")
        for number in range(given.batches):
            tables = {name: rows_of_file(workload, at, number) for at, name in enumerate(STREAM_NAMES)}
            for name, table in tables.items():
                kept[name].append(table)
            is_profiled = profile is not None and number >= given.warm_up
            batches.append(_run_batch(session, tables, profile if is_profiled else None))
            _print_batch(console, number, batches[-1])
        chosen = {name: queries[name] for name in chosen_queries(queries)}
        with views_of_tables(kept, threads=1) as duckdb:
            wrong = wrong_answers(duckdb, point, given.batches, chosen, session.results)
    for name, difference in wrong.items():
        console.print(f"[red]{name}: {difference}[/red]")
    console.print(f"{len(chosen) - len(wrong)} of {len(chosen)} queries that were checked equal DuckDB's")
    return batches, not wrong


def _run_batch(session: LocalSession, tables: Mapping[str, pa.Table], profile: cProfile.Profile | None) -> LocalBatch:
    if profile is not None:
        profile.enable()
    began = time.process_time()
    session.push(tables)
    cpu_s = time.process_time() - began
    if profile is not None:
        profile.disable()
    progress: dict[str, Any] = session.progress or {}
    failed = [query["name"] for query in progress["queries"] if query["state"] != "running"]
    if failed:
        raise SystemExit(f"queries that do not run: {', '.join(failed)}")
    parts = {f"driver: {part}": ms for part, ms in progress["durationMs"].items() if part != "run"}
    parts |= {f"tasks: {part}": seconds * 1e3 for part, seconds in progress["taskSeconds"].items()}
    results = sum(query["numOutputRows"] for query in progress["queries"])
    return LocalBatch(cpu_s, results, max(store["numBuckets"] for store in progress["stores"]), parts)


def _print_batch(console: Console, number: int, batch: LocalBatch) -> None:
    console.print(
        f"batch {number:3d}: {batch.cpu_s * 1e3:8.1f} ms CPU, {batch.results:9,} results, {batch.buckets} buckets",
        highlight=False,
    )


def _print_medians(console: Console, point: Point, batches: Sequence[LocalBatch]) -> None:
    cpu_ms = median([batch.cpu_s * 1e3 for batch in batches])
    per_row = sum(batch.results for batch in batches) / len(batches) / point.rows_per_batch
    console.print(f"median of the last {len(batches)}: {cpu_ms:.1f} ms CPU; {per_row:.1f} results a row")
    for part in dict.fromkeys(part for batch in batches for part in batch.parts_ms):
        console.print(f"  {part:24} {median([batch.parts_ms.get(part, 0.0) for batch in batches]):9.1f} ms by the wall")


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.steady.in_process", description=__doc__)
    parser.add_argument("queries", type=int)
    parser.add_argument("rows", type=int, help="rows a batch, over all streams")
    parser.add_argument("batches", type=int)
    parser.add_argument("--mixed", action="store_true", help="residuals, theta, outer, aggregates, self-joins, too")
    parser.add_argument("--profile", action="store_true", help="print what Python spent the time in after warm-up")
    parser.add_argument("--warm-up", type=int, default=None, help="batches that do not count (default: a third)")
    parser.add_argument("--window-scale", type=int, default=1, help="longer windows over more keys: more buckets")
    parser.add_argument("--no-merges", action="store_true", help="a bucket a batch stays one")
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    if given.warm_up is None:
        given.warm_up = given.batches // 3
    if not 0 <= given.warm_up < given.batches:
        parser.error("some batches must be left after warm-up")
    return given


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
