from __future__ import annotations

import io

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.options import BenchOptions
from benchmarks.run import run_suite
from benchmarks.suites import ilp

ISSUE_KEYS = {"relations", "queries", "size", "saving", "seconds_1pct", "seconds_optimal", "gap", "variables"}


def test_ilp_suite_reports_each_case_and_starts_no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ilp, "QUICK_CASES", (ilp.IlpCase(10, 20, 3),))
    monkeypatch.setattr(ilp, "QUICK_PARTITIONED_CASES", (ilp.IlpCase(10, 3, 3, 4),))
    session_before = SparkSession.getActiveSession()
    output = io.StringIO()
    figures = run_suite("ilp", BenchOptions(quick=True), Console(file=output, width=200))
    assert SparkSession.getActiveSession() is session_before
    (case,) = figures["cases"]  # type: ignore[misc]
    assert set(case) >= ISSUE_KEYS | {"cost_shared", "cost_individual"}
    assert case["saving"] == pytest.approx(1 - case["cost_shared"] / case["cost_individual"], abs=1e-3)
    assert 0 < case["saving"] < 1
    assert case["seconds_1pct"] <= case["seconds_optimal"]
    assert "20 queries of 3 over 10 relations" in output.getvalue()
    assert "4 tasks a store" in output.getvalue()
