"""The suites `theta` and `aggregates` at their smallest: right answers, and the keys that others read."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.data.bistream import aggregate_cases, band_case, write_aggregates, write_band
from benchmarks.data.fanout import ALL_SUMS, Fanout, fanout_case, write_fanout
from benchmarks.data.folder_case import find_right, spark_batch, spark_refusal, time_spark
from benchmarks.measure import Steps
from benchmarks.options import BenchOptions
from benchmarks.report.figure_rows import ROWS_BY_SUITE
from benchmarks.suites import aggregates, theta
from benchmarks.workbench import Workbench

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def _workbench(spark: SparkSession, folder: Path, **options: Any) -> Workbench:
    return Workbench(spark, folder, BenchOptions(quick=True, cores=2, **options), Steps(Console(file=StringIO())))


def test_every_tuple_is_stored_once_and_by_the_join_matrix_four_times(spark: SparkSession, tmp_path: Path) -> None:
    figures: dict[str, Any] = theta.run(_workbench(spark, tmp_path, scale=0.005, rows=2_000))
    assert figures["results_equal"]
    assert figures["stored_rows_over_input_rows"] == 1.0
    assert figures["matrix_stored_over_ours"] == pytest.approx(4.0)
    assert {"rows_per_s", "ratio_duckdb", "floor_s"} <= figures.keys()
    assert "equality" in figures["spark_refusal"]
    for name in ("selected_by_query", "inequality", "similarity"):
        assert figures[name]["results"] > 0
    assert len(ROWS_BY_SUITE["theta"](figures)) > 10


def test_groups_are_right_with_rows_built_and_without(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aggregates, "CHECKED_KEYS", 1)
    figures: dict[str, Any] = aggregates.run(_workbench(spark, tmp_path, scale=0.005, rows=1, time_limit_s=60))
    assert figures["results_equal"]
    assert figures["sums_equal"]
    assert {"materialized_s", "factorized_s", "spark_s", "spark_finished"} <= figures.keys()
    assert list(figures["queries"]) == ["Q5", "Q7", "Band"]
    assert all(case["results_equal"] and case["groups"] > 1 for case in figures["queries"].values())
    assert len(ROWS_BY_SUITE["aggregates"](figures)) > 5


def test_spark_streams_the_sums_that_duckdb_gives_in_batch(spark: SparkSession, tmp_path: Path) -> None:
    bench = _workbench(spark, tmp_path, time_limit_s=120)
    data = Fanout(keys=2, batches=2, rows_per_key=20)
    case = fanout_case("fanout", data, write_fanout(data, tmp_path / "data"), ALL_SUMS)
    right = find_right(bench, case)
    assert time_spark(bench, case, right).is_equal
    assert spark_batch(bench, case, right)[1]


def test_spark_in_batch_gives_the_groups_of_duckdb(spark: SparkSession, tmp_path: Path) -> None:
    bench = _workbench(spark, tmp_path)
    for case in aggregate_cases(write_aggregates(0.005, 2, 1, tmp_path / "tpch")):
        assert spark_batch(bench, case, find_right(bench, case))[1]


def test_spark_says_itself_why_it_does_not_join_a_band(spark: SparkSession, tmp_path: Path) -> None:
    bench = _workbench(spark, tmp_path)
    refusal = spark_refusal(bench, band_case(write_band(0.001, 1, 1, tmp_path / "tpch"), 0))
    assert refusal == "Stream-stream join without equality predicate is not supported."
