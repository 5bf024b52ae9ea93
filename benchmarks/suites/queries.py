"""Suite `queries`: AJoin's template with more and more distinct two-way queries over the same two streams.

Selections keep about half of each stream, windows are 1 to 3 s, and a query yields about one result per
ten input rows. Ours runs them all in one session; Spark runs one streaming query each in one application.
Each system keeps the batch size at which it was fastest with one query.
"""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.data.workloads import Workload, ajoin_queries
from benchmarks.workbench import Case, Measured, Workbench, fastest, ratio_to

DEFAULT_ROWS = 2_000_000
QUICK_ROWS = 100_000
SECONDS = 20
BATCH_SIZES_S = (5, 10)
QUICK_BATCH_SIZES_S = (5,)
WARM_UP_SECONDS = 8
QUICK_WARM_UP_SECONDS = 4
WARM_UP_QUERIES = 5
# Of an a-row's 2 * 2 s * rate / range partners (2 s: the mean window) selections leave a quarter, and half
# of the input are a-rows: with range = 5 * rate that is 0.1 results per input row.
RANGE_OVER_RATE = 5
QUERY_COUNTS = (1, 5, 20, 100, 500)
QUICK_QUERY_COUNTS = (1, 20, 100)
SPARK_QUERY_COUNTS = (1, 5, 20)
QUICK_SPARK_QUERY_COUNTS = (20,)


def run(bench: Workbench) -> dict[str, object]:
    quick = bench.options.quick
    counts = QUICK_QUERY_COUNTS if quick else QUERY_COUNTS
    rows_per_second = max(1, bench.options.rows_or(DEFAULT_ROWS, QUICK_ROWS) // (2 * SECONDS))
    key_range = RANGE_OVER_RATE * rows_per_second
    files = bench.write(Workload(("a", "b"), SECONDS, rows_per_second, (key_range,) * 6, bench.options.seed))
    every = bench.case(f"{counts[-1]} queries", files, ajoin_queries(counts[-1], key_range, bench.options.seed))
    case_by_count = {count: every.first(count, f"{count} queries") for count in counts}
    bench.warm_up(
        every.first(WARM_UP_QUERIES, f"{WARM_UP_QUERIES} queries"),
        QUICK_WARM_UP_SECONDS if quick else WARM_UP_SECONDS,
        with_spark=not quick,
    )
    ours = _time_dovetail(bench, case_by_count)
    spark = _time_spark(bench, case_by_count)
    return _figures(case_by_count, ours, spark)


def _time_dovetail(bench: Workbench, case_by_count: Mapping[int, Case]) -> dict[int, Measured]:
    sizes = QUICK_BATCH_SIZES_S if bench.options.quick else BATCH_SIZES_S
    one = fastest([bench.time_dovetail(case_by_count[1], size, bench.options.repeats_or(3)) for size in sizes])
    measured = {1: one}
    for count, case in case_by_count.items():
        if count > 1:
            repeats = bench.options.repeats_or(5 if count <= 20 else 2)
            measured[count] = bench.time_dovetail(case, one.seconds_per_batch, repeats)
    return measured


def _time_spark(bench: Workbench, case_by_count: Mapping[int, Case]) -> dict[int, Measured]:
    sizes = QUICK_BATCH_SIZES_S if bench.options.quick else BATCH_SIZES_S
    measured: dict[int, Measured] = {}
    for count in QUICK_SPARK_QUERY_COUNTS if bench.options.quick else SPARK_QUERY_COUNTS:
        measured[count] = fastest([bench.time_spark(case_by_count[count], size) for size in sizes])
        sizes = (measured[count].seconds_per_batch,)
    return measured


def _figures(
    case_by_count: Mapping[int, Case], ours: Mapping[int, Measured], spark: Mapping[int, Measured]
) -> dict[str, object]:
    by_queries = {
        str(count): _figures_of_count(case, ours[count], spark.get(count)) for count, case in case_by_count.items()
    }
    growth = {count: round(one.seconds / ours[1].seconds, 2) for count, one in ours.items()}
    return {
        "rows": case_by_count[1].rows,
        "by_queries": by_queries,
        "ratio_spark_20": ratio_to(spark[20], ours[20]),
        "growth_100": growth.get(100),
        "growth_500": growth.get(500),
        "results_equal": all(bool(figures["results_equal"]) for figures in by_queries.values()),
        "dovetail_seconds_per_batch": ours[1].seconds_per_batch,
        "spark_seconds_per_batch": spark[20].seconds_per_batch,
        "spread": {
            "dovetail_s": {str(count): one.timing.spread for count, one in ours.items()},
            "spark_s": {str(count): one.timing.spread for count, one in spark.items()},
        },
    }


def _figures_of_count(case: Case, ours: Measured, spark: Measured | None) -> dict[str, object]:
    figures: dict[str, object] = {
        "dovetail_s": round(ours.seconds, 3),
        "spark_s": spark.timing.finished_seconds if spark else None,
        "results": case.results,
        "results_equal": ours.is_equal and (spark is None or spark.is_equal),
        "create_s": round(ours.create_s, 3),
    }
    if spark and not spark.timing.is_finished:
        figures["spark_stopped_after_s"] = round(spark.seconds, 1)
        figures["spark_done_share"] = round(spark.timing.best.done_share, 3)
    return figures
