"""Suite `multiway`: chains of 3, 4 and 5 streams, an attribute pair of its own per hop, against Spark's cascades.

Every row finds one partner per hop on average, so results are as many as rows of one stream. Each system
keeps the batch size at which it was fastest with three streams.
"""

from __future__ import annotations

from benchmarks.data.workloads import STREAM_NAMES, StreamFiles, Workload, chain_join
from benchmarks.measure import RunTime
from benchmarks.peers.spark_peer import spark_cascade
from benchmarks.workbench import Case, Measured, Workbench, fastest, ratio_to

DEFAULT_ROWS = 5_000_000
QUICK_ROWS = 100_000
SECONDS = 20
BATCH_SIZES_S = (5, 10)
QUICK_BATCH_SIZES_S = (5,)
WARM_UP_SECONDS = 8
QUICK_WARM_UP_SECONDS = 4
WINDOW_S = 1
RELATION_COUNTS = (3, 4, 5)


def run(bench: Workbench) -> dict[str, object]:
    rows_per_second = max(1, bench.options.rows_or(DEFAULT_ROWS, QUICK_ROWS) // (len(STREAM_NAMES) * SECONDS))
    key_ranges = (2 * WINDOW_S * rows_per_second,) * 6
    files = bench.write(Workload(STREAM_NAMES, SECONDS, rows_per_second, key_ranges, bench.options.seed))
    ours_sizes = spark_sizes = QUICK_BATCH_SIZES_S if bench.options.quick else BATCH_SIZES_S
    by_relations: dict[str, dict[str, object]] = {}
    spread: dict[str, dict[str, list[float]]] = {}
    for relation_count in RELATION_COUNTS:
        case = _chain_case(bench, files.only(STREAM_NAMES[:relation_count]))
        limit = _time_duckdb(bench, case)
        ours = fastest([bench.time_dovetail(case, size, bench.options.repeats_or(3)) for size in ours_sizes])
        spark = fastest([bench.time_spark(case, size) for size in spark_sizes])
        ours_sizes, spark_sizes = (ours.seconds_per_batch,), (spark.seconds_per_batch,)
        by_relations[str(relation_count)] = _figures_of_chain(case, ours, spark, limit)
        spread[str(relation_count)] = {"dovetail_s": ours.timing.spread, "spark_s": spark.timing.spread}
    return {
        "rows_per_stream": SECONDS * rows_per_second,
        "by_relations": by_relations,
        **{f"ratio_spark_{count}": figures["ratio_spark"] for count, figures in by_relations.items()},
        "results_equal": all(bool(figures["results_equal"]) for figures in by_relations.values()),
        "dovetail_seconds_per_batch": ours_sizes[0],
        "spark_seconds_per_batch": spark_sizes[0],
        "spread": spread,
    }


def _chain_case(bench: Workbench, files: StreamFiles) -> Case:
    relation_count = len(files.workload.streams)
    case = bench.case(
        f"{relation_count}-way",
        files,
        {"q": chain_join(relation_count, WINDOW_S)},
        {"q": spark_cascade(relation_count, WINDOW_S)},
    )
    quick = bench.options.quick
    bench.warm_up(case, QUICK_WARM_UP_SECONDS if quick else WARM_UP_SECONDS, with_spark=not quick)
    return case


def _time_duckdb(bench: Workbench, case: Case) -> RunTime:
    with bench.duckdb(case.files) as duckdb:
        return duckdb.run(case.query_sql_by_name["q"], bench.fresh_folder("duckdb.parquet"))


def _figures_of_chain(case: Case, ours: Measured, spark: Measured, limit: RunTime) -> dict[str, object]:
    figures: dict[str, object] = {
        "rows": case.rows,
        "results": case.results,
        "dovetail_s": round(ours.seconds, 3),
        "spark_s": spark.timing.finished_seconds,
        "duckdb_s": round(limit.seconds, 3),
        "ratio_spark": ratio_to(spark, ours),
        "results_equal": ours.is_equal and spark.is_equal,
    }
    if not spark.timing.is_finished:
        figures["spark_stopped_after_s"] = round(spark.seconds, 1)
        figures["spark_done_share"] = round(spark.timing.best.done_share, 3)
    return figures
