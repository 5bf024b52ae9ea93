"""The suite `steady` on Spark: how it counts, what it can be told, and what its figures become."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.data.workloads import STREAM_NAMES
from benchmarks.measure import Steps
from benchmarks.options import BenchError, BenchOptions
from benchmarks.report.plots import write_plot
from benchmarks.report.table import figure_rows
from benchmarks.steady.feed import Feed
from benchmarks.steady.floor import Touched, floor_s
from benchmarks.steady.measure_point import (
    WARMING_BATCHES,
    Effort,
    _warming_figures,
    batch_figures,
    drift,
    measure_point,
)
from benchmarks.steady.point import Point
from benchmarks.steady.processes import Cpu, Processes, _processes
from benchmarks.steady.rows import steady_headline
from benchmarks.steady.steady_session import BatchCost
from benchmarks.suites import steady
from benchmarks.workbench import Workbench

KEYS = {
    "batch_p50_s",
    "batch_p99_s",
    "task_cpu_s",
    "jvm_cpu_s",
    "driver_ms",
    "drift",
    "files",
    "results_per_row",
    "worker_rss_gb",
    "results_equal",
}
RATE_KEYS = {"sustained_rows_per_s", "latency_p50_s"}
TOUCHED = Touched(new_rows=10, searches=40, pairs=80, answers=60)
MEASURED: dict[str, Any] = {
    "batches": 60,
    "batch_p50_s": 0.4,
    "batch_p99_s": 0.6,
    "task_cpu_s": 0.2,
    "jvm_cpu_s": 0.1,
    "driver_ms": 12.0,
    "drift": 1.02,
    "files": 3,
    "results_per_row": 9.0,
    "buckets_per_store": 11.0,
    "live_rows": 130_000,
    "floor_s": 0.05,
    "worker_rss_gb": 0.5,
    "worker_own_gb": 0.4,
    "sustained_rows_per_s": 60_000,
    "latency_p50_s": 0.5,
    "latency_at_rows_per_s": 10_000,
    "results_equal": True,
}
STOPPED: dict[str, Any] = {
    "batches": 0,
    "stopped_after": 900.0,
    "results_equal": True,
    "warming_up": {
        "batches": 40,
        "batch_p50_s": 21.5,
        "task_cpu_s": 30.0,
        "driver_ms": 300.0,
        "buckets_per_store": 41.0,
    },
}
FIGURES: dict[str, Any] = {
    "suite": "steady",
    "by_queries": {"50": {**MEASURED, "batch_p50_s": 0.2}, "500": MEASURED},
    "by_buckets": {"11": MEASURED, "300": STOPPED},
    "by_live_rows": {"10000000": MEASURED},
    "spark_alone": {"10000": {"batch_p50_s": 0.3, "queries": 3, "results_equal": True}},
    "enough_results": True,
    "fewest_results_per_row": 5.0,
    "results_equal": True,
}


def bench_on(spark: SparkSession, folder: Path, **options: Any) -> Workbench:
    return Workbench(spark, folder, BenchOptions(quick=True, cores=2, **options), Steps(Console(file=StringIO())))


def daemons(processes: Processes) -> set[int]:
    """The processes that start workers."""
    by_pid = _processes()
    workers = processes._workers(by_pid)
    return {by_pid[pid].parent for pid in workers} & workers


def cost(seconds: float, worker_s: float = 1.0, driver_s: float = 0.1, files: int | None = None) -> BatchCost:
    return BatchCost(seconds, Cpu(worker_s, 0.5, driver_s), files, 60, 11.0, 900, {"run": 1.0}, TOUCHED)


def test_drift_is_the_last_ten_batches_over_the_second_ten() -> None:
    assert drift([9.0] * 10 + [1.0] * 10 + [5.0] * 5 + [2.0] * 10) == 2.0
    assert drift([1.0] * 29) is None


def test_cpu_is_a_mean_over_batches_and_files_are_of_those_that_counted_them() -> None:
    point = Point(9, 10)
    figures = batch_figures(point, [cost(1.0, 1.0, files=7), cost(2.0, 1.0), cost(9.0, 4.0)])
    assert figures["batch_p50_s"] == 2.0
    assert figures["batch_p99_s"] == 9.0
    assert figures["task_cpu_s"] == 2.0
    assert figures["driver_ms"] == 100.0
    assert figures["files"] == 7
    assert figures["results_per_row"] == 6.0
    assert 0 < float(str(figures["floor_s"])) < 1


def test_the_floor_grows_with_what_is_touched_and_with_where_it_lies() -> None:
    more = Touched(TOUCHED.new_rows * 2, *(each * 100_000 for each in (40, 80, 60)))
    assert floor_s(more, 10_000_000) > floor_s(TOUCHED, 10_000_000) > 0
    progress = {
        "streams": [{"numInputRows": 4}, {"numInputRows": 6}],
        "work": {"partitions": [{"probedRows": 40, "pairs": 30}, {"probedRows": 0, "pairs": 50}]},
        "queries": [{"numOutputRows": 60}],
    }
    assert Touched.in_batch(progress) == TOUCHED


def test_parts_are_chosen_by_axis_or_by_point() -> None:
    chosen = steady._chosen(steady.full_points(), BenchOptions(only=("by_queries.500", "mixed"), batches=7))
    assert {axis: list(points) for axis, points in chosen.items()} == {"by_queries": ["500"], "mixed": ["500"]}
    assert chosen["by_queries"]["500"].batches == 7
    assert steady._chosen(steady.full_points(), BenchOptions()).keys() == steady.full_points().keys()


def test_a_part_that_there_is_not_is_an_error_that_lists_those_there_are() -> None:
    with pytest.raises(BenchError, match="no part by_query") as raised:
        steady._chosen(steady.full_points(), BenchOptions(only=("by_query",)))
    assert "by_queries.500" in str(raised.value.hint)


def test_the_axes_cross_in_one_point_that_is_measured_once() -> None:
    points = steady.full_points()
    assert points["by_queries"]["500"].point == points["by_rows"]["10000"].point == Point()


def test_too_few_results_are_noticed_at_the_points_that_should_have_them() -> None:
    few, many = ({"batches": 3, "results_per_row": value} for value in (1.0, 6.0))
    assert steady._has_enough_results({Point(): many, Point(50): few})
    assert steady._has_enough_results({Point(): few, Point(2000): many}) is False
    assert steady._has_enough_results({Point(50): few}) is None


def test_files_come_whole_in_order_and_are_the_same_for_every_reader(tmp_path: Path) -> None:
    feed = Feed(Point(9, 10), 1, tmp_path)
    feed.write_ahead(2)
    assert not list(feed.folder.rglob("*.parquet"))
    for _ in range(3):
        feed.put()
    assert feed.batches == 3
    for stream in STREAM_NAMES:
        files = sorted(feed.files.path(stream).iterdir())
        assert len(files) == 3
        assert [file.stat().st_mtime for file in files] == sorted({file.stat().st_mtime for file in files})


def test_a_point_that_was_stopped_is_reported_as_stopped() -> None:
    values = {row.measured: row.value for row in figure_rows(FIGURES)}
    stopped = values["about 300 buckets a store: batch, median"]
    assert stopped == "stopped after 900 s, 0 batches measured; 21.5 s at 41.0 buckets a store"
    assert values["500 template queries: batch, median; 99%"] == "0.4 s; 0.6 s"
    assert values["500 template queries: floor (searches, pairs and bytes alone, one core)"].startswith("50 ms; tasks")
    assert values["Spark's batch of 10,000 rows for one join of two, alone (median of 3)"] == "0.3 s"
    assert values["10,000,000 rows kept: memory of a worker; of that no mapped files"].startswith("0.5 GB; 0.4 GB")
    assert "500 queries, 10,000 rows: 0.4 s a batch" in steady_headline(FIGURES)
    assert steady_headline({"by_rows": {}}) == "not all parts were run"


def test_batch_time_is_drawn_by_queries_rows_and_buckets(tmp_path: Path) -> None:
    assert write_plot(FIGURES, tmp_path / "plot.svg")
    drawn = (tmp_path / "plot.svg").read_text(encoding="utf-8")
    assert all(
        text in drawn for text in ("queries", "rows a batch", "buckets a store", "CPU of tasks", "floor", "Spark")
    )


@pytest.mark.spark
def test_what_python_workers_spend_is_theirs_and_not_the_drivers(spark: SparkSession) -> None:
    processes = Processes(spark)

    def burn(numbers: Any) -> Any:
        ends_at = time.process_time() + 1.0
        while time.process_time() < ends_at:
            pass
        return [sum(numbers)]

    spark.sparkContext.parallelize([1], 1).count()
    before = processes.cpu()
    assert spark.sparkContext.parallelize([1, 2], 1).mapPartitions(burn).collect() == [3]
    spent = processes.cpu().since(before)
    # On a busy machine a process pays for more than it does: the driver's share is what would show a mistake.
    assert spent.worker_s >= 0.9
    assert spent.driver_s < spent.worker_s / 2
    for pid in processes._workers(_processes()) - daemons(processes):
        os.kill(pid, signal.SIGKILL)
    assert processes.cpu().since(before).worker_s >= spent.worker_s, "a worker that ended takes its time along"
    spark.sparkContext.parallelize([1], 1).count()
    assert processes.cpu().since(before).worker_s >= spent.worker_s
    all_gb, own_gb = processes.largest_worker_gb()
    assert 0.01 < own_gb <= all_gb


@pytest.mark.spark
def test_a_point_counts_every_batch_and_has_right_answers(spark: SparkSession, tmp_path: Path) -> None:
    figures: dict[str, Any] = steady.run(
        bench_on(spark, tmp_path, only=("mixed.9", "by_queries.4", "spark_alone"), batches=3)
    )
    assert all(alone["batch_p50_s"] > 0 and alone["results_equal"] for alone in figures["spark_alone"].values())
    assert figures["results_equal"]
    for point in (figures["mixed"]["9"], figures["by_queries"]["4"]):
        assert point.keys() >= KEYS | RATE_KEYS
        assert point["batches"] == len(point["spread"]["batch_s"]) == 3
        assert point["files"] >= 1
        assert point["task_cpu_s"] > 0
        assert point["live_rows"] > 500
    assert figure_rows({"suite": "steady", **figures})
    assert json.dumps(figures)


@pytest.mark.spark
def test_a_point_that_takes_too_long_says_so_and_is_still_checked(spark: SparkSession, tmp_path: Path) -> None:
    figures = measure_point(bench_on(spark, tmp_path), "late", Point(2, 50), Effort(5, 5, limit_s=0.001))
    assert figures["batches"] == 0
    assert float(str(figures["stopped_after"])) > 0
    assert figures["results_equal"] is True
    assert figures["warming_up"] == {"batches": 0}


def test_of_a_point_that_was_stopped_while_it_filled_the_last_batches_are_told() -> None:
    figures = _warming_figures([cost(1.0), *[cost(4.0, worker_s=3.0)] * WARMING_BATCHES])
    assert figures["batches"] == WARMING_BATCHES + 1
    assert figures["batch_p50_s"] == 4.0
    assert figures["task_cpu_s"] == 3.0


def test_the_command_takes_parts_and_batches() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "dovetail.cli.main", "bench", "--help"], capture_output=True, text=True, check=True
    )
    assert "--only" in shown.stdout
    assert "--batches" in shown.stdout
    assert BenchOptions(only=("mixed",), batches=3).arguments_text == "--batches 3 --only mixed"
    with pytest.raises(BenchError, match="needs a batch"):
        BenchOptions(batches=0)
