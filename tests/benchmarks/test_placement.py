from __future__ import annotations

import io

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.options import BenchOptions
from benchmarks.run import run_suite
from benchmarks.suites import placement
from benchmarks.suites.placement import PlacementCase


def test_placement_suite_reports_each_case_and_each_heuristic_and_starts_no_spark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = PlacementCase(3, 2, 8)
    monkeypatch.setattr(placement, "FIGURE_CASE", case)
    monkeypatch.setattr(placement, "QUICK_CASES", (case,))
    monkeypatch.setattr(placement, "QUICK_SHARE_CASES", (case,))
    monkeypatch.setattr(placement, "SHARE_BUDGET_S", 0.3)
    session_before = SparkSession.getActiveSession()
    output = io.StringIO()
    figures = run_suite("placement", BenchOptions(quick=True, time_limit_s=0.5), Console(file=output, width=200))
    assert SparkSession.getActiveSession() is session_before
    found = figures["cases"]["3q_2p_8g"]  # type: ignore[index]
    assert 0 < found["bound_or_optimum"] <= found["cost"] <= found["cost_even"]
    assert found["accuracy"] == pytest.approx(found["bound_or_optimum"] / found["cost"], abs=1e-3)
    assert found["shipped_over_unshared"] <= found["shipped_over_unshared_even"] <= 1
    assert figures["within_3q_2p_8g"] == pytest.approx(1 / found["accuracy"] - 1, abs=1e-3)
    assert figures["seconds_3q_2p_8g"] == found["seconds_near"]
    shares = figures["shares"]["3q_2p_8g"]  # type: ignore[index]
    assert set(shares["without"]) == set(placement.HEURISTICS) - {"time budget"}
    assert shares["all"]["cost_over_all"] <= shares["none"]["cost_over_all"]
    assert "3 queries, 2 partitions, 8 key groups, with pair tree only" in output.getvalue()
