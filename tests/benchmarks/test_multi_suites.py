"""The suites `adaptive` and `tpch-multi` at their smallest: right answers, and the keys that others read."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.measure import Steps
from benchmarks.options import BenchOptions
from benchmarks.suites import adaptive, tpch_multi
from benchmarks.workbench import Workbench

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def _workbench(spark: SparkSession, folder: Path, **options: Any) -> Workbench:
    return Workbench(spark, folder, BenchOptions(quick=True, cores=2, **options), Steps(Console(file=StringIO())))


def test_an_adaptive_plan_stops_finding_what_a_static_one_goes_on_to_find(spark: SparkSession, tmp_path: Path) -> None:
    figures: dict[str, Any] = adaptive.run(_workbench(spark, tmp_path, rows=1))
    assert figures["results_equal"]
    for case in (figures, figures["b"]):
        assert {"static_s", "adaptive_s", "static_peak_rows", "adaptive_peak_rows"} <= case.keys()
        assert len(case["series"]["static"]["batch_ms"]) == adaptive.QUICK_SECONDS
    assert figures["static_settled_rows"] == 2 * 100 * figures["rows_per_second"]["s"]
    assert figures["adaptive_settled_rows"] < figures["static_settled_rows"] / 3


def test_one_session_keeps_less_than_one_per_query(spark: SparkSession, tmp_path: Path) -> None:
    figures: dict[str, Any] = tpch_multi.run(_workbench(spark, tmp_path, scale=0.001))
    assert figures["results_equal"]
    for name in ("five", "ten"):
        case = figures[name]
        for mode in ("independent", "shared", "joint"):
            assert {f"{mode}_s", f"{mode}_bytes"} <= case.keys()
        assert case["joint_bytes"] < case["independent_bytes"]
    assert figures["five"]["spark_s"] is None or figures["five"]["spark_results_equal"]
