"""Suite `theta`: joins without an equality, against DuckDB in batch; and memory against the join-matrix.

Band is BiStream's, over lineitem with its full history; its selections are applied by both systems while they read.
The same with the selections in the query, for which every line has to reach the engine, stands beside it, as does what
is left of Band with an equality, which is all of it that Spark can join as streams. The inequality join (two
inequalities) and the similarity (a distance, from which no range follows) are over two streams of six attributes,
the first one within a second.

Rows stored are those in all stores after the last batch, as the engine reports them. The join-matrix has as many units
and an engine of its own (`benchmarks/join_matrix`) on the same kernels and files: its rows are really stored and
joined, in one process and without Spark, so that its time says less than what it stores. A time of ours counts from the
start to the last commit, with all answers written; every run of every system gives the same answer.
"""

from __future__ import annotations

from benchmarks.data.bistream import FIRST, SECOND, band_case, band_in_query_case, equi_case, write_band
from benchmarks.data.folder_case import (
    FolderCase,
    Ours,
    find_right,
    run_ours,
    run_spark_streams,
    spark_refusal,
    stopped_figures,
    time_duckdb,
    time_floor,
    time_ours,
    time_spark,
)
from benchmarks.data.workloads import SCHEMA_DDL, Workload, time_bound, write_workload
from benchmarks.join_matrix.run import MatrixRun, run_matrix
from benchmarks.measure import Timing
from benchmarks.peers.duckdb_peer import DuckDbViews
from benchmarks.replay import Replay, StreamFolder
from benchmarks.tpch.tables import TpchFiles, growth_is_meant, select_sql
from benchmarks.workbench import Workbench

DEFAULT_SCALE = 2.0
QUICK_SCALE = 0.01
BATCHES = 4
QUICK_BATCHES = 2
KEY_UNITS, FEWER_UNITS = 16, 4
INEQUALITY_ROWS, QUICK_INEQUALITY_ROWS = 800_000, 8_000
SIMILARITY_ROWS, QUICK_SIMILARITY_ROWS = 40_000, 2_000
SECONDS = 20
SECONDS_PER_BATCH = 5
PLACES = 20_000
"""Values of the attributes of the similarity: small enough that squares are whole numbers of 32 bits."""

INEQUALITY = "a.x0 > b.x0 + 90000 AND a.x1 + 90000 < b.x1"
SIMILARITY = "(a.x2 - b.x2) * (a.x2 - b.x2) + (a.x3 - b.x3) * (a.x3 - b.x3) <= 40000"
IDS = "SELECT a.id AS a_id, b.id AS b_id FROM a JOIN b ON "


def run(bench: Workbench) -> dict[str, object]:
    quick = bench.options.quick
    scale = bench.options.scale_or(DEFAULT_SCALE, QUICK_SCALE)
    batches = QUICK_BATCHES if quick else BATCHES
    with bench.steps.step(f"TPC-H's lineitem at scale {scale}"):
        files = write_band(scale, batches, bench.options.seed, bench.fresh_folder("tpch"))
        input_rows = _selected_rows(bench, files)
    with growth_is_meant():
        band = _band_figures(bench, band_case(files, input_rows))
        in_query = _against_duckdb(bench, band_in_query_case(files))
        equi = _equi_figures(bench, equi_case(files, input_rows))
        others = {
            "inequality": _against_duckdb(bench, _inequality_case(bench)),
            "similarity": _against_duckdb(bench, _similarity_case(bench)),
        }
    cases = {"selected_by_query": in_query, "equi_part": equi, **others}
    return {
        "scale": scale,
        "lineitem_rows": files.rows_by_table["lineitem"],
        "batches": batches,
        **band,
        **cases,
        "results_equal": all(bool(figures["results_equal"]) for figures in (band, *cases.values())),
    }


def _selected_rows(bench: Workbench, files: TpchFiles) -> int:
    with DuckDbViews(select_sql(files), bench.options.cores) as duckdb:
        counts = [duckdb.number(f"SELECT count(*) FROM lineitem WHERE {where}") for where in (FIRST, SECOND)]
    return sum(counts)


def _band_figures(bench: Workbench, case: FolderCase) -> dict[str, object]:
    right = find_right(bench, case)
    repeats = bench.options.repeats_or(3)
    _warm_up(bench, case)
    ours = time_ours(bench, case, right, {"partitions": KEY_UNITS}, repeats, f"Dovetail, {KEY_UNITS} units")
    own_units = time_ours(bench, case, right, {}, repeats, "Dovetail, a unit a core")
    limit, floor = time_duckdb(bench, case, repeats), time_floor(bench, case, repeats)
    fewer = time_ours(bench, case, right, {"partitions": FEWER_UNITS}, 1, f"Dovetail, {FEWER_UNITS} units")
    ours_by_units = {FEWER_UNITS: fewer, KEY_UNITS: ours}
    matrix_by_units = {units: run_matrix(bench, case, right, units) for units in ours_by_units}
    stored_rows = ours.best.state_rows
    return {
        "units": KEY_UNITS,
        "rows": case.rows,
        "results": right.answer.row_count,
        "rows_per_s": round(case.rows / ours.seconds),
        **_times(ours, limit, floor),
        "unit_a_core_s": round(own_units.seconds, 3),
        "stored_rows_over_input_rows": round(stored_rows / case.rows, 4),
        "matrix_stored_over_ours": round(matrix_by_units[KEY_UNITS].state_rows / stored_rows, 3),
        "by_units": {
            str(units): {**_kept("ours", each.best, each.seconds), **_kept("matrix", made, made.seconds)}
            for (units, each), made in zip(ours_by_units.items(), matrix_by_units.values(), strict=True)
        },
        "spark_refusal": spark_refusal(bench, case),
        "results_equal": all(each.is_equal for each in (own_units, *ours_by_units.values()))
        and all(each.is_equal for each in matrix_by_units.values()),
    }


def _kept(layout: str, run: Replay | MatrixRun, seconds: float) -> dict[str, object]:
    """What stores hold after the last batch."""
    return {
        f"{layout}_stored_rows": run.state_rows,
        f"{layout}_stored_bytes": run.state_bytes,
        f"{layout}_s": round(seconds, 3),
    }


def _against_duckdb(bench: Workbench, case: FolderCase) -> dict[str, object]:
    right = find_right(bench, case)
    repeats = bench.options.repeats_or(3)
    _warm_up(bench, case)
    ours = time_ours(bench, case, right, {}, repeats)
    limit, floor = time_duckdb(bench, case, repeats), time_floor(bench, case, repeats)
    return {
        "rows": case.rows,
        "results": right.answer.row_count,
        "rows_per_s": round(case.rows / ours.seconds),
        **_times(ours, limit, floor),
        "results_equal": ours.is_equal,
    }


def _times(ours: Ours, limit: Timing, floor: Timing) -> dict[str, object]:
    return {
        "dovetail_s": round(ours.seconds, 3),
        "duckdb_s": round(limit.seconds, 3),
        "floor_s": round(floor.seconds, 3),
        "ratio_duckdb": round(ours.seconds / limit.seconds, 2),
        "floor_ratio": round(ours.seconds / floor.seconds, 2),
        "spread": {"dovetail_s": ours.spread, "duckdb_s": limit.spread, "floor_s": floor.spread},
    }


def _equi_figures(bench: Workbench, case: FolderCase) -> dict[str, object]:
    right = find_right(bench, case)
    ours = time_ours(bench, case, right, {}, bench.options.repeats_or(3))
    if not bench.options.quick:
        with bench.steps.step(f"{case.name}: warming up Spark"):
            run_spark_streams(bench, case)
    spark = time_spark(bench, case, right)
    return {
        "rows": case.rows,
        "results": right.answer.row_count,
        "dovetail_s": round(ours.seconds, 3),
        "spark_s": spark.timing.finished_seconds,
        **stopped_figures(spark),
        "ratio_spark": round(spark.timing.seconds / ours.seconds, 2),
        "spread": {"dovetail_s": ours.spread},
        "results_equal": ours.is_equal and spark.is_equal is not False,
    }


def _warm_up(bench: Workbench, case: FolderCase) -> None:
    """A whole run before any clock counts: code is compiled, workers are started, files are in memory."""
    with bench.steps.step(f"{case.name}: warming up"):
        run_ours(bench, case, {})


def _inequality_case(bench: Workbench) -> FolderCase:
    rows = bench.options.rows_or(INEQUALITY_ROWS, QUICK_INEQUALITY_ROWS)
    sql = f"{IDS}{INEQUALITY} AND {time_bound('a', 'b', 1)}"
    return _pair_case(bench, "inequality", rows, (100_000,) * 6, sql, ("id", "ts", "x0", "x1"))


def _similarity_case(bench: Workbench) -> FolderCase:
    rows = bench.options.rows_or(SIMILARITY_ROWS, QUICK_SIMILARITY_ROWS)
    return _pair_case(bench, "similarity", rows, (PLACES,) * 6, f"{IDS}{SIMILARITY}", ("id", "x2", "x3"))


def _pair_case(
    bench: Workbench, name: str, rows: int, key_ranges: tuple[int, ...], sql: str, crossing: tuple[str, ...]
) -> FolderCase:
    rows_per_second = max(1, rows // (2 * SECONDS))
    workload = Workload(("a", "b"), SECONDS, rows_per_second, key_ranges, bench.options.seed, SECONDS_PER_BATCH)
    with bench.steps.step(f"{name}: writing {workload.total_rows:,} rows"):
        files = write_workload(workload, bench.fresh_folder("data"))
    streams = tuple(StreamFolder(stream, files.path(stream), SCHEMA_DDL, "ts") for stream in workload.streams)
    return FolderCase(name, streams, workload.total_rows, sql, crossing=crossing)
