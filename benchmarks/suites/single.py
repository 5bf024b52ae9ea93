"""Suite `single`: two streams, one interval join, against Spark, DuckDB in batch, and the floor.

A row of a finds one partner in b on average, within 1 s before or after. Every system reads the same
files and writes its answer to Parquet; Spark and Dovetail may each choose from the same batch sizes.
"""

from __future__ import annotations

from benchmarks.data.workloads import Workload, interval_join
from benchmarks.measure import RunTime, Timing
from benchmarks.peers.floor import run_floor
from benchmarks.peers.spark_peer import STATE_STORES
from benchmarks.workbench import Case, Measured, Workbench, fastest, ratio_to

DEFAULT_ROWS = 4_000_000
QUICK_ROWS = 400_000
SECONDS = 20
BATCH_SIZES_S = (2, 5, 10)
QUICK_BATCH_SIZES_S = (5,)
WARM_UP_SECONDS = 8
QUICK_WARM_UP_SECONDS = 4
NEEDED_COLUMNS = ("id", "ts", "x0")
WINDOW_S = 1


def run(bench: Workbench) -> dict[str, object]:
    rows_per_second = max(1, bench.options.rows_or(DEFAULT_ROWS, QUICK_ROWS) // (2 * SECONDS))
    key_ranges = (2 * WINDOW_S * rows_per_second,) * 6
    files = bench.write(Workload(("a", "b"), SECONDS, rows_per_second, key_ranges, bench.options.seed))
    case = bench.case("one join", files, {"q": interval_join(WINDOW_S)})
    sizes = QUICK_BATCH_SIZES_S if bench.options.quick else BATCH_SIZES_S
    bench.warm_up(case, QUICK_WARM_UP_SECONDS if bench.options.quick else WARM_UP_SECONDS)
    repeats = bench.options.repeats_or(3, 2)
    ours = fastest([bench.time_dovetail(case, size, repeats) for size in sizes])
    ours, floor = _time_beside_floor(bench, case, ours, repeats)
    limit = _time_duckdb(bench, case, repeats)
    spark_by_store = {}
    for store in STATE_STORES:
        spark = fastest([bench.time_spark(case, size, bench.options.repeats or 1, store) for size in sizes])
        spark_by_store[store.name] = spark
        # The slower store is measured at the batch size that suits Spark best, not at all of them.
        sizes = (spark.seconds_per_batch,)
    return _figures(case, ours, floor, limit, spark_by_store)


def _time_beside_floor(bench: Workbench, case: Case, ours: Measured, repeats: int) -> tuple[Measured, Timing]:
    """The floor and ours in turn, so that both see the machine's good and bad minutes."""
    size = ours.seconds_per_batch
    floors: list[RunTime] = []
    for _ in range(repeats):
        text = f"floor: the same batches handed to Python, {size} s a batch"
        floor = bench.time_repeats(
            text,
            1,
            lambda: run_floor(
                bench.spark, case.files, NEEDED_COLUMNS, bench.fresh_folder("floor"), seconds_per_batch=size
            ),
        )
        floors += floor.runs
        again = bench.time_dovetail(case, size, 1)
        ours = Measured(Timing(ours.timing.runs + again.timing.runs), size, ours.is_equal and again.is_equal)
    return ours, Timing(tuple(floors))


def _time_duckdb(bench: Workbench, case: Case, repeats: int) -> Timing:
    with bench.duckdb(case.files) as duckdb:
        return bench.time_repeats(
            "limit: DuckDB in batch",
            repeats,
            lambda: duckdb.run(case.query_sql_by_name["q"], bench.fresh_folder("duckdb.parquet")),
        )


def _figures(
    case: Case, ours: Measured, floor: Timing, limit: Timing, spark_by_store: dict[str, Measured]
) -> dict[str, object]:
    rate_by_store = {name: spark.rows_per_s(case.rows) for name, spark in spark_by_store.items()}
    better_store = max(rate_by_store, key=rate_by_store.__getitem__)
    spark = spark_by_store[better_store]
    return {
        "rows": case.rows,
        "results": case.results,
        "dovetail_rows_per_s": ours.rows_per_s(case.rows),
        "spark_rows_per_s": rate_by_store[better_store],
        "duckdb_rows_per_s": round(case.rows / limit.seconds),
        "ratio_spark": ratio_to(spark, ours),
        "ratio_duckdb": round(ours.seconds / limit.seconds, 2),
        "floor_ratio": round(ours.seconds / floor.seconds, 2),
        "results_equal": ours.is_equal and all(one.is_equal for one in spark_by_store.values()),
        "dovetail_seconds_per_batch": ours.seconds_per_batch,
        "spark_seconds_per_batch": spark.seconds_per_batch,
        "spark_state_store": better_store,
        "spark_stopped": not spark.timing.is_finished,
        "spark_rows_per_s_by_state_store": rate_by_store,
        "spread": {
            "dovetail_s": ours.timing.spread,
            "spark_s": {name: one.timing.spread for name, one in spark_by_store.items()},
            "duckdb_s": limit.spread,
            "floor_s": floor.spread,
        },
    }
