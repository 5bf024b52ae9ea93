"""Figures become a table, and the README's block is replaced and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.options import BenchError
from benchmarks.report.table import BEGIN_MARK, END_MARK, figure_rows, main, markdown_block, replace_block

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


def test_the_block_names_the_machine_and_the_date_once() -> None:
    block = markdown_block([SMALLEST, QUERIES])
    assert block.startswith("Measured on 2 cores, 24 GiB, Spark 4.3.0, 2026-01-31.\n")
    assert "| `smallest` | batch, median | 150 ms |" in block


def test_suites_that_were_not_run_anew_keep_their_rows() -> None:
    old = markdown_block([SMALLEST, QUERIES])
    newer = {**SMALLEST, "date": "2026-02-01", "batch_ms_p50": 99.0}
    block = markdown_block([newer], old)
    assert [row for row in block.splitlines() if "`queries`" in row] == [
        r for r in old.splitlines() if "`queries`" in r
    ]
    assert [row for row in block.splitlines() if "batch, median" in row and "Spark" not in row] == [
        "| `smallest` | batch, median | 99 ms |"
    ]
    assert "2026-01-31; 2 cores" in block
    assert markdown_block([SMALLEST], old) == old


def test_only_the_text_between_the_marks_changes() -> None:
    readme = f"before\n{BEGIN_MARK}\nold\n{END_MARK}\nafter\n"
    assert replace_block(readme, "new") == f"before\n{BEGIN_MARK}\nnew\n{END_MARK}\nafter\n"
    assert replace_block(replace_block(readme, "new"), "newer") == replace_block(readme, "newer")


@pytest.mark.parametrize(
    "readme",
    ["", BEGIN_MARK, END_MARK, f"{END_MARK}{BEGIN_MARK}", f"{BEGIN_MARK}{END_MARK}{BEGIN_MARK}{END_MARK}"],
)
def test_a_readme_without_one_place_for_the_figures_is_refused(readme: str) -> None:
    with pytest.raises(BenchError, match="no place"):
        replace_block(readme, "new")


def test_the_command_rewrites_the_readme_from_json_files(tmp_path: Path) -> None:
    readme, figures = tmp_path / "README.md", tmp_path / "smallest.json"
    readme.write_text(f"# x\n{BEGIN_MARK}\n{END_MARK}\n", encoding="utf-8")
    figures.write_text(json.dumps(SMALLEST), encoding="utf-8")
    assert main([str(readme), str(figures)]) == 0
    assert "| `smallest` | batch, 90th percentile | 180 ms |" in readme.read_text(encoding="utf-8")


def test_the_command_without_figures_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["README.md"]) == 2
    assert "usage" in capsys.readouterr().err
