"""Suite `steady`: many queries in small batches that never end, with growth along three axes around one point.

    by_queries    50, 500, 2,000 template queries (AJoin's, joins of two to five streams)
    by_rows       1,000, 10,000, 100,000 rows a batch
    by_buckets    about 11, 100, 300 buckets a store: windows 1, 8, 25 times as long over as many times more keys, so
                  that a row finds as many partners; no bucket is merged with another
    mixed         queries of every kind: residuals, theta, outer joins, aggregates, self-joins
    by_live_rows  memory with 10,000,000 rows kept
    spark_alone   Spark's own batch for one of the queries, by rows a batch

A batch is a second of event time, and follows the one before at once: time and CPU of all processes from commit to
commit are the batch's. Then batches of more and more files show the largest rate that lasts, and files that come one a
second (or at four fifths of that rate) how long an answer takes. Answers of some queries of every point are compared
with DuckDB's over everything that came.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.options import BenchError, BenchOptions
from benchmarks.steady.measure_point import Effort, measure_point
from benchmarks.steady.point import Point
from benchmarks.steady.spark_alone import spark_alone
from benchmarks.workbench import Workbench

FEWEST_RESULTS_PER_ROW = 5.0
ROWS, QUICK_ROWS = (1_000, 10_000, 100_000), (500, 2_000)
SPARK_ALONE = "spark_alone"
BATCHES, QUICK_BATCHES = 60, 4
POINT_LIMIT_S, QUICK_POINT_LIMIT_S = 900.0, 120.0
SETTLING_BATCHES = 5
"""Beyond those that fill the windows: until then the planner counts the data for the first time, and plans change."""
RETAINED_WINDOWS = 4
"""A chain of five has four windows between its ends."""
LIVE_ROWS = 10_000_000


@dataclass(frozen=True)
class Asked:
    """A point, how many batches fill its stores, how many count, and whether the rate that lasts is sought."""

    point: Point
    warm_up: int
    batches: int
    sustains: bool = True


def run(bench: Workbench) -> dict[str, object]:
    points = _chosen(quick_points() if bench.options.quick else full_points(), bench.options)
    limit_s = bench.options.time_limit_s or (QUICK_POINT_LIMIT_S if bench.options.quick else POINT_LIMIT_S)
    measured: dict[Point, dict[str, object]] = {}
    figures: dict[str, Any] = {}
    for axis, by_name in points.items():
        for name, asked in by_name.items():
            if asked.point not in measured:
                effort = Effort(asked.warm_up, asked.batches, limit_s, asked.sustains)
                measured[asked.point] = measure_point(bench, f"{axis}.{name}", asked.point, effort)
            figures.setdefault(axis, {})[name] = measured[asked.point]
    if not bench.options.only or SPARK_ALONE in bench.options.only:
        rows = QUICK_ROWS if bench.options.quick else ROWS
        figures[SPARK_ALONE] = {str(each): spark_alone(bench, SPARK_ALONE, Point(rows=each)) for each in rows}
    return {
        **figures,
        **_growth(figures),
        "fewest_results_per_row": FEWEST_RESULTS_PER_ROW,
        "enough_results": _has_enough_results(measured),
        "results_equal": all(
            bool(each["results_equal"]) for each in (*measured.values(), *figures.get(SPARK_ALONE, {}).values())
        ),
    }


def full_points() -> dict[str, dict[str, Asked]]:
    return {
        "by_queries": {str(count): _asked(Point(count)) for count in (50, 500, 2_000)},
        "by_rows": {str(rows): _asked(Point(rows=rows)) for rows in ROWS},
        "by_buckets": {
            str(buckets): _asked(Point(window_scale=scale, merges=False))
            for buckets, scale in ((11, 1), (100, 8), (300, 25))
        },
        "mixed": {"500": _asked(Point(is_mixed=True))},
        # Memory only: rows find few partners, so that the state is there soon.
        "by_live_rows": {
            str(LIVE_ROWS): replace(_asked(Point(rows=200_000, window_scale=4, sparse=20)), batches=5, sustains=False)
        },
    }


def quick_points() -> dict[str, dict[str, Asked]]:
    def asked(point: Point) -> Asked:
        return Asked(point, 2, QUICK_BATCHES)

    return {
        "by_queries": {str(count): asked(Point(count, 500)) for count in (4, 12)},
        "by_rows": {str(rows): asked(Point(12, rows)) for rows in QUICK_ROWS},
        "by_buckets": {"11": asked(Point(12, 500, merges=False))},
        "mixed": {"9": Asked(Point(9, 500, is_mixed=True), 4, QUICK_BATCHES)},
        "by_live_rows": {"10000": replace(asked(Point(4, 2_000, sparse=20)), sustains=False)},
    }


def _asked(point: Point) -> Asked:
    return Asked(point, RETAINED_WINDOWS * point.longest_window_s + SETTLING_BATCHES, BATCHES)


def _chosen(points: Mapping[str, Mapping[str, Asked]], options: BenchOptions) -> dict[str, dict[str, Asked]]:
    """Those that `--only` names, by axis or by point, with as many batches as are asked for."""
    names = {f"{axis}.{name}" for axis, by_name in points.items() for name in by_name}
    unknown = [part for part in options.only if part not in names | points.keys() | {SPARK_ALONE}]
    if unknown:
        parts = ", ".join((*points, SPARK_ALONE, *sorted(names)))
        raise BenchError(f"steady has no part {', '.join(unknown)}", hint=f"one of: {parts}")
    chosen: dict[str, dict[str, Asked]] = {}
    for axis, by_name in points.items():
        for name, asked in by_name.items():
            if not options.only or {axis, f"{axis}.{name}"} & set(options.only):
                batches = options.batches or asked.batches
                chosen.setdefault(axis, {})[name] = replace(asked, batches=batches)
    return chosen


def _has_enough_results(measured: Mapping[Point, Mapping[str, Any]]) -> bool | None:
    """Of points with as many queries as the central one; None where none of them was measured."""
    counted = [
        figures["results_per_row"]
        for point, figures in measured.items()
        if point.queries >= Point().queries and point.sparse == 1 and not point.is_mixed and figures["batches"]
    ]
    return min(counted) >= FEWEST_RESULTS_PER_ROW if counted else None


def _growth(figures: Mapping[str, Any]) -> dict[str, object]:
    """Batch time of the last point of an axis over its first, where both were measured."""
    growth = {}
    for axis in ("by_queries", "by_rows", "by_buckets"):
        seconds = [each.get("batch_p50_s") for each in figures.get(axis, {}).values()]
        if len(seconds) > 1 and seconds[0] and seconds[-1]:
            growth[f"growth_{axis}"] = round(seconds[-1] / seconds[0], 2)
    return growth
