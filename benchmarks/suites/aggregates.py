"""Suite `aggregates`: groups over joins. BiStream's Q5, Q7 and Band, and a join with 1,000 results per input row.

The three are timed against DuckDB and Spark in batch and, where Spark runs them as streams, against its joins feeding
an aggregation. The join with many results is asked for a count and a sum only: once with its rows built (the session's
option `factorize` off), once from aggregates of each side's keys, once on Spark. All answers are running: the groups
that changed are answered with every batch. All sums, of integers, decimals and doubles, are checked to the last digit.

A time counts from the start to the last commit. Spark runs at the better of two batch sizes, found on a part of the
rows, under a time limit: of a run that was stopped, `spark_s` is what it would have taken at the rate of the batches it
finished, which flatters it, because the last batches have the most results; without one, at the rate of results on
that part of the rows.
"""

from __future__ import annotations

from pyspark.errors import PySparkException

from benchmarks.data.bistream import aggregate_cases, write_aggregates
from benchmarks.data.fanout import (
    ALL_SUMS,
    COUNT_AND_SUM,
    RESULTS_PER_ROW,
    Fanout,
    fanout_case,
    fanout_of,
    write_fanout,
)
from benchmarks.data.folder_case import (
    FolderCase,
    Right,
    Theirs,
    find_right,
    refusal_text,
    run_ours,
    spark_batch,
    stopped_figures,
    time_duckdb,
    time_floor,
    time_ours,
    time_spark,
)
from benchmarks.tpch.tables import growth_is_meant
from benchmarks.workbench import Workbench

DEFAULT_SCALE = 0.2
QUICK_SCALE = 0.005
DEFAULT_ROWS = 4_000_000
QUICK_ROWS = 8_000
BATCHES = 4
QUICK_BATCHES = 2
CHECKED_KEYS = 2
"""All sums are checked on a few keys: with a million results to each, that is enough to overflow what is too small."""

TRIED_KEYS = 8
FILES_PER_BATCH = (1, 4)
MATERIALIZED = {"factorize": False}
FACTORIZED = {"factorize": True}


def run(bench: Workbench) -> dict[str, object]:
    scale = bench.options.scale_or(DEFAULT_SCALE, QUICK_SCALE)
    batches = QUICK_BATCHES if bench.options.quick else BATCHES
    with bench.steps.step(f"TPC-H's tables at scale {scale}"):
        files = write_aggregates(scale, batches, bench.options.seed, bench.fresh_folder("tpch"))
    with growth_is_meant():
        queries = {case.name: _query_figures(bench, case) for case in aggregate_cases(files)}
        sums_equal = _are_sums_equal(bench, batches)
        fanout = _fanout_figures(bench, batches)
    return {
        "scale": scale,
        "batches": batches,
        "queries": queries,
        **fanout,
        "sums_equal": sums_equal,
        "results_equal": bool(fanout["results_equal"])
        and sums_equal
        and all(bool(figures["results_equal"]) for figures in queries.values()),
    }


def _query_figures(bench: Workbench, case: FolderCase) -> dict[str, object]:
    right = find_right(bench, case)
    repeats = bench.options.repeats_or(3)
    with bench.steps.step(f"{case.name}: warming up"):
        run_ours(bench, case, {})
    ours = time_ours(bench, case, right, {}, repeats)
    limit = time_duckdb(bench, case, repeats)
    batch_s, is_batch_equal = spark_batch(bench, case, right)
    spark = _spark_figures(bench, case, right)
    return {
        "rows": case.rows,
        "groups": right.answer.row_count,
        "dovetail_s": round(ours.seconds, 3),
        "duckdb_s": round(limit.seconds, 3),
        "spark_batch_s": round(batch_s, 3),
        "ratio_duckdb": round(ours.seconds / limit.seconds, 2),
        **spark,
        "spread": {"dovetail_s": ours.spread, "duckdb_s": limit.spread},
        "results_equal": ours.is_equal and is_batch_equal and spark.get("spark_results_equal") is not False,
    }


def _spark_figures(bench: Workbench, case: FolderCase, right: Right) -> dict[str, object]:
    """Spark's joins and aggregation as one streaming query, or its own words why not."""
    if bench.options.quick:
        return {"spark_s": None}
    try:
        spark = time_spark(bench, case, right)
    except PySparkException as error:
        return {"spark_s": None, "spark_refusal": refusal_text(error)}
    return {
        "spark_s": spark.timing.finished_seconds,
        "spark_results_equal": spark.is_equal,
        **stopped_figures(spark),
    }


def _are_sums_equal(bench: Workbench, batches: int) -> bool:
    """Sums of integers, decimals and doubles: with rows built and without, as streams and in batch."""
    data = Fanout(CHECKED_KEYS, batches, seed=bench.options.seed)
    streams = write_fanout(data, bench.fresh_folder("sums"))
    case = fanout_case("all sums", data, streams, ALL_SUMS)
    right = find_right(bench, case)
    ours = [time_ours(bench, case, right, options, 1, str(options)) for options in (MATERIALIZED, FACTORIZED)]
    _, is_batch_equal = spark_batch(bench, case, right)
    return is_batch_equal and all(each.is_equal for each in ours)


def _fanout_figures(bench: Workbench, batches: int) -> dict[str, object]:
    data = fanout_of(bench.options.rows_or(DEFAULT_ROWS, QUICK_ROWS), batches, bench.options.seed)
    with bench.steps.step(f"{RESULTS_PER_ROW:,} results per row: writing {data.rows:,} rows"):
        streams = write_fanout(data, bench.fresh_folder("fanout"))
    case = fanout_case(f"{RESULTS_PER_ROW:,} results per row", data, streams, COUNT_AND_SUM)
    right = find_right(bench, case)
    repeats = bench.options.repeats_or(3)
    # `_are_sums_equal` has run the same kind of query with both options: everything is warm.
    factorized = time_ours(bench, case, right, FACTORIZED, repeats, "Dovetail, factorized")
    floor = time_floor(bench, case, repeats)
    materialized = time_ours(bench, case, right, MATERIALIZED, 1, "Dovetail, rows built")
    limit = time_duckdb(bench, case, 1)
    tried, tried_results = _best_try(bench)
    spark = time_spark(bench, case, right, tried.files_per_batch)
    is_any_batch_done = spark.timing.is_finished or spark.timing.best.done_share > 0
    spark_s = spark.whole_s if is_any_batch_done else tried.whole_s * data.results / tried_results
    return {
        "rows": data.rows,
        "results": data.results,
        "materialized_s": round(materialized.seconds, 3),
        "factorized_s": round(factorized.seconds, 3),
        "spark_s": round(spark_s, 3),
        "spark_finished": spark.timing.is_finished,
        **stopped_figures(spark),
        "duckdb_s": round(limit.seconds, 3),
        "floor_s": round(floor.seconds, 3),
        "ratio_materialized": round(materialized.seconds / factorized.seconds, 1),
        "ratio_spark": round(spark_s / factorized.seconds, 1),
        "floor_ratio": round(factorized.seconds / floor.seconds, 2),
        "spark_files_per_batch": spark.files_per_batch,
        "results_equal": materialized.is_equal and factorized.is_equal and spark.is_equal is not False,
        "spread": {"factorized_s": factorized.spread, "materialized_s": materialized.spread, "floor_s": floor.spread},
    }


def _best_try(bench: Workbench) -> tuple[Theirs, int]:
    """Spark's better batch size on a part of the rows, and how many results these have. Warms Spark up too."""
    data = Fanout(1 if bench.options.quick else TRIED_KEYS, BATCHES, seed=bench.options.seed)
    streams = write_fanout(data, bench.fresh_folder("tried"))
    case = fanout_case("Spark's batch size", data, streams, COUNT_AND_SUM)
    right = find_right(bench, case)
    sizes = FILES_PER_BATCH[:1] if bench.options.quick else (*FILES_PER_BATCH, *FILES_PER_BATCH)
    tried = [time_spark(bench, case, right, files) for files in sizes]
    return min(tried, key=lambda each: each.whole_s), data.results
