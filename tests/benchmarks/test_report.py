"""Figures become rows, plots and a page; the committed page is what its JSON makes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.options import BenchError
from benchmarks.report.figure_rows import ROWS_BY_SUITE
from benchmarks.report.page import PAGE, main, page_text, read_figures
from benchmarks.report.plots import PLOT_BY_SUITE, write_plot
from benchmarks.report.suite_notes import NOTE_BY_SUITE
from benchmarks.report.table import figure_rows
from benchmarks.run import SUITES, SUITES_WITHOUT_SPARK

CIRCUMSTANCES: dict[str, Any] = {
    "machine": {"cores": 2, "memory_gib": 24},
    "date": "2026-01-31",
    "spark_version": "4.3.0",
    "quick": False,
}
SMALLEST: dict[str, Any] = {
    "suite": "smallest",
    "rows_per_batch": 20,
    "batch_ms_p50": 150.4,
    "batch_ms_p90": 180.0,
    "spark_batch_ms_p50": 900.0,
    "results_equal": True,
    **CIRCUMSTANCES,
}
QUERIES: dict[str, Any] = {
    "suite": "queries",
    "rows": 2_000_000,
    "by_queries": {
        "1": {"dovetail_s": 1.0, "spark_s": 30.0, "results": 200},
        "20": {
            "dovetail_s": 4.0,
            "spark_s": None,
            "spark_stopped_after_s": 600.0,
            "spark_done_share": 0.37,
            "results": 4000,
        },
        "100": {"dovetail_s": 9.0, "spark_s": None, "results": 20000},
    },
    "ratio_spark_20": 150.0,
    "growth_100": 9.0,
    "growth_500": None,
    "results_equal": False,
    **CIRCUMSTANCES,
}
ADAPTIVE_CASE: dict[str, Any] = {
    "static_s": 4.0,
    "adaptive_s": 0.4,
    "ratio": 10.0,
    "static_peak_rows": 4_000_000,
    "adaptive_peak_rows": 4_000_000,
    "static_settled_rows": 4_000_000,
    "statistics_share": 0.011,
    "adaptive_settled_rows": 12,
    "rows_per_second": {"r": 20_000, "s": 20_000, "t": 20_000, "u": 20_000},
}
ADAPTIVE: dict[str, Any] = {"suite": "adaptive", **ADAPTIVE_CASE, "b": ADAPTIVE_CASE, **CIRCUMSTANCES}
TPCH_CASE: dict[str, Any] = {
    "independent_s": 40.0,
    "shared_s": 12.0,
    "joint_s": 10.0,
    "speedup": 4.0,
    "bytes_ratio": 5.5,
    "rows_ratio": 6.0,
    "results": 7_000,
}
TPCH_MULTI: dict[str, Any] = {
    "suite": "tpch-multi",
    "scale": 0.1,
    "rows": 866_602,
    "five": {**TPCH_CASE, "spark_s": None, "spark_stopped_after_s": 300.0, "spark_done_share": 0.25},
    "ten": TPCH_CASE,
    **CIRCUMSTANCES,
}
TREE: dict[str, Any] = {"rows_shipped": 1_000, "rows_stored": 2_000, "seconds": 0.5, "planning_seconds": 0.1}
MATERIALIZE: dict[str, Any] = {
    "suite": "materialize",
    "cases": {"Q3": {"flat": TREE, "left_deep": {**TREE, "rows_shipped": 400}, "optimized": TREE}},
    **CIRCUMSTANCES,
}

THETA_CASE: dict[str, Any] = {
    "rows": 100,
    "results": 10,
    "dovetail_s": 2.0,
    "duckdb_s": 0.5,
    "floor_s": 1.0,
    "ratio_duckdb": 4.0,
    "floor_ratio": 2.0,
}
THETA: dict[str, Any] = {
    "suite": "theta",
    "scale": 1.0,
    "units": 16,
    **THETA_CASE,
    "rows_per_s": 50,
    "unit_a_core_s": 1.5,
    "stored_rows_over_input_rows": 1.0,
    "by_units": {
        "4": {"ours_stored_rows": 100, "matrix_stored_rows": 200},
        "16": {"ours_stored_rows": 100, "matrix_stored_rows": 400},
    },
    "selected_by_query": THETA_CASE,
    "inequality": THETA_CASE,
    "similarity": THETA_CASE,
    "equi_part": {
        "dovetail_s": 1.0,
        "spark_s": None,
        "spark_stopped_after_s": 300.0,
        "spark_done_share": 0.5,
        "ratio_spark": 300.0,
    },
    **CIRCUMSTANCES,
}
GROUPS_CASE: dict[str, Any] = {"rows": 100, "groups": 5, "dovetail_s": 2.0, "duckdb_s": 0.1, "spark_batch_s": 3.0}
AGGREGATES: dict[str, Any] = {
    "suite": "aggregates",
    "queries": {
        "Q5": {**GROUPS_CASE, "spark_s": 40.0},
        "Band": {**GROUPS_CASE, "spark_s": None, "spark_refusal": "no equality"},
    },
    "rows": 4_000,
    "results": 4_000_000,
    "materialized_s": 50.0,
    "factorized_s": 0.5,
    "spark_s": 600.0,
    "spark_finished": False,
    "spark_stopped_after_s": 300.0,
    "spark_done_share": 0.5,
    "floor_s": 0.25,
    "ratio_materialized": 100.0,
    "ratio_spark": 1200.0,
    "sums_equal": True,
    **CIRCUMSTANCES,
}


def _values(figures: dict[str, Any]) -> dict[str, str]:
    return {row.measured: row.value for row in figure_rows(figures)}


def test_a_stopped_peer_is_reported_as_stopped_and_its_ratio_as_a_lower_bound() -> None:
    values = _values(QUERIES)
    assert "Spark stopped after 600.0 s, 37% done" in values["20 queries"]
    assert values["faster than Spark, 20 queries"] == "at least 150.0x"
    assert "Spark not run" in values["100 queries"]


def test_unequal_answers_are_shouted() -> None:
    assert _values(QUERIES)["all answers that were checked equal DuckDB's"] == "NO"
    assert _values(SMALLEST)["all answers that were checked equal DuckDB's"] == "yes"


def test_a_growth_that_was_not_measured_has_no_row() -> None:
    assert not any("500" in measured for measured in _values(QUERIES))


def test_both_figures_of_the_adaptive_plan_are_shown() -> None:
    values = _values(ADAPTIVE)
    assert values["8a: static over adaptive"] == values["8b: static over adaptive"] == "10.0x"
    after = "partial results in a batch after the change, static plan; adaptive"
    assert values[f"8a: {after}"] == "4,000,000; 12"


def test_spark_stands_beside_the_five_queries_only() -> None:
    values = _values(TPCH_MULTI)
    assert values["five queries, 7,000 results"].endswith("joint 10.0 s; Spark stopped after 300.0 s, 25% done")
    assert values["ten queries, 7,000 results"].endswith("joint 10.0 s")
    assert values["ten queries: independent over joint, bytes of state"] == "5.5x"


def test_each_tree_of_a_join_has_a_row() -> None:
    values = _values(MATERIALIZE)
    assert (
        values["Q3, left-deep: rows shipped; rows stored; time of batches; of planning"] == "400; 2,000; 0.5 s; 0.1 s"
    )
    assert len(values) == 3


def test_band_stands_beside_its_limit_its_floor_and_the_join_matrix() -> None:
    values = _values(THETA)
    assert values["Band, 16 units"] == "50 rows/s; 2.0 s; DuckDB batch 0.5 s; only reading 1.0 s"
    assert values["Band, 16 units: rows stored over input rows"] == "1.00"
    assert values["Band, 4 units: join-matrix's stored rows over ours"] == "2.00x"
    assert values["Band, 16 units: join-matrix's stored rows over ours"] == "4.00x"
    assert values["Band's equi-part, faster than Spark"] == "at least 300.0x"


def test_what_spark_refused_and_what_it_did_not_finish_is_said() -> None:
    values = _values(AGGREGATES)
    assert values["Q5 with aggregation, 100 rows, 5 groups"].endswith("Spark streaming 40.0 s")
    assert values["Band with aggregation, 100 rows, 5 groups"].endswith("Spark streaming refused")
    size = "count and sum over 4,000 rows, 4,000,000 results"
    assert values[f"{size}: Spark"] == "600.0 s expected, stopped after 300.0 s, 50% done"
    assert values["factorized, faster than with rows built"] == "100.0x"


def test_the_page_names_machine_date_commit_and_command() -> None:
    page = page_text([{**SMALLEST, "commit": "abc1234", "arguments": "--rows 600"}])
    assert (
        "`dovetail bench smallest --rows 600` on 2 cores, 24 GiB, Spark 4.3.0, 2026-01-31, commit abc1234 "
        "([JSON](benchmarks/smallest.json))."
    ) in page
    assert "| batch, median | 150 ms |" in page
    assert "![smallest](benchmarks/smallest.svg)" in page


def test_suites_stand_in_the_order_of_the_registry_whatever_the_files_order() -> None:
    page = page_text([SMALLEST, QUERIES])
    assert page == page_text([QUERIES, SMALLEST])
    assert page.index("## queries") < page.index("## smallest")


def test_figures_that_were_read_back_from_a_table_are_marked() -> None:
    assert "as published" not in page_text([SMALLEST])
    assert "2026-01-31, as published" in page_text([{**SMALLEST, "transcribed": "from the table"}])


def test_the_command_writes_the_page_and_the_plots(tmp_path: Path) -> None:
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (folder / "smallest.json").write_text(json.dumps(SMALLEST), encoding="utf-8")
    assert main([str(tmp_path / "benchmarks.md")]) == 0
    assert "## smallest" in (tmp_path / "benchmarks.md").read_text(encoding="utf-8")
    assert "Spark, median" in (folder / "smallest.svg").read_text(encoding="utf-8")


def test_quick_runs_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (folder / "smallest.json").write_text(json.dumps({**SMALLEST, "quick": True}), encoding="utf-8")
    with pytest.raises(BenchError, match="quick runs are no results: smallest"):
        main([str(tmp_path / "benchmarks.md")])


def test_every_suite_has_rows_a_note_and_a_plot() -> None:
    assert list(ROWS_BY_SUITE) == list(NOTE_BY_SUITE) == list(PLOT_BY_SUITE)
    assert set(ROWS_BY_SUITE) == {*SUITES, *SUITES_WITHOUT_SPARK}


def test_the_committed_page_is_the_one_that_its_figures_make() -> None:
    assert PAGE.read_text(encoding="utf-8") == page_text(read_figures(PAGE.with_suffix("")))


@pytest.mark.parametrize("path", sorted(PAGE.with_suffix("").glob("*.json")), ids=lambda path: path.stem)
def test_committed_figures_can_be_drawn_and_lie_beside_their_plot(path: Path, tmp_path: Path) -> None:
    figures = json.loads(path.read_text(encoding="utf-8"))
    assert figures["suite"] == path.stem
    assert path.with_suffix(".svg").exists()
    if write_plot(figures, tmp_path / "plot.svg"):
        assert (tmp_path / "plot.svg").read_text(encoding="utf-8").startswith("<?xml")
