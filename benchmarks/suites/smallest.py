"""Suite `smallest`: what a batch costs when there is nothing to do: a few rows, one hop, from trigger to commit."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.data.workloads import Workload, interval_join
from benchmarks.measure import median, percentile
from benchmarks.workbench import Workbench

DEFAULT_ROWS = 2_000
QUICK_ROWS = 600
ROWS_PER_SECOND = 10
SKIPPED_BATCHES = 10
SPARK_BATCHES = 40
QUICK_SPARK_BATCHES = 18


def run(bench: Workbench) -> dict[str, object]:
    rows = bench.options.rows_or(DEFAULT_ROWS, QUICK_ROWS)
    seconds = max(SKIPPED_BATCHES + 10, rows // (2 * ROWS_PER_SECOND))
    key_ranges = (2 * ROWS_PER_SECOND,) * 6
    files = bench.write(Workload(("a", "b"), seconds, ROWS_PER_SECOND, key_ranges, bench.options.seed))
    case = bench.case("smallest batch", files, {"q": interval_join(1)})
    bench.warm_up(case, SKIPPED_BATCHES, with_spark=False)
    with bench.steps.step(f"Dovetail, {seconds} batches of {2 * ROWS_PER_SECOND} rows"):
        ours = bench.run_dovetail(files, case.query_sql_by_name, 1, read_answers=True)
    spark_batches = QUICK_SPARK_BATCHES if bench.options.quick else SPARK_BATCHES
    part = files.prefix(spark_batches, bench.fresh_folder("spark-part"))
    with bench.steps.step(f"Spark, {spark_batches} batches of {2 * ROWS_PER_SECOND} rows"):
        spark = bench.run_spark(part, case.query_sql_by_name, 1)
    ours_ms, spark_ms = _warm(ours.time.batch_ms), _warm(spark.time.batch_ms)
    return {
        "rows_per_batch": 2 * ROWS_PER_SECOND,
        "batches": len(ours_ms),
        "batch_ms_p50": round(median(ours_ms), 1),
        "batch_ms_p90": round(percentile(ours_ms, 0.9), 1),
        "spark_batch_ms_p50": round(median(spark_ms), 1) if spark_ms else None,
        "results_equal": bench.is_equal("Dovetail", case, ours.answer_by_name),
        "last_batch_duration_ms": ours.last_progress.get("durationMs"),
        "spread": {"batch_ms": [min(ours_ms), max(ours_ms)]},
    }


def _warm(batch_ms: Sequence[float]) -> list[float]:
    """The first batches compile code in the JVM and start Python workers: start-up, not cost of a batch."""
    return list(batch_ms[SKIPPED_BATCHES:])
