"""Suite `partition`: what shipping tuples costs with and without sharing, by Spark's own shuffle metrics.

Three workloads: the join and grouping parts of fourteen TPC-H queries over its tables as streams, AJoin's template with
more and more queries, and two aggregates over the traces of a cluster. Each runs four ways over the same batches: every
query ships for itself, in a session of its own; and in one session, tuples go once for each key that any query
partitions by (AJoin); once to each partition that any query sends them to, with key groups placed so that these are few
(SASPAR); and by references, the session's default, which ships no tuple. There is a partition a core. The first half of
the batches, in which a session learns of its streams and places key groups, counts for none; a time is that of the
other half's batches. Of queries with sessions of their own at most 20 run, one session after the other, and their
figures are scaled up to all queries; starting a session counts for none.

Aggregates over a stream ship no tuple either: rows are folded where they are, and partial groups travel. So of the
cluster's two `shipped_*` is 0, and `exchanged_*` tells what partial groups and all else came to.
"""

from __future__ import annotations

from typing import Any

from benchmarks.data.cluster_traces import QUERIES as CLUSTER_QUERIES
from benchmarks.data.cluster_traces import SIZE_S, SLIDE_S, ClusterTraces, duckdb_sql
from benchmarks.data.folder_case import Right
from benchmarks.data.workloads import ATTRIBUTE_COUNT, SCHEMA_DDL, Workload, ajoin_queries
from benchmarks.marks import compare_marks
from benchmarks.partition.case import MODES, PartitionCase, compare, run_mode
from benchmarks.partition.change import measure_change
from benchmarks.peers.duckdb_peer import DuckDbViews
from benchmarks.replay import StreamFolder, duckdb_views
from benchmarks.tpch.fourteen import COLUMNS, QUERIES
from benchmarks.tpch.tables import growth_is_meant, schema_ddl, select_sql, write_tpch
from benchmarks.verify import Answer
from benchmarks.workbench import Workbench

MORE_PARTITIONS = (4,)
"""What is shipped to more partitions than there are cores; every query for itself ships the same to any number."""

DEFAULT_SCALE = 0.02
QUICK_SCALE = 0.005
BATCHES = 8
QUICK_BATCHES = 2

QUERY_COUNTS = (1, 5, 20, 100, 500, 2000)
QUICK_QUERY_COUNTS = (1, 20)
DEFAULT_AJOIN_ROWS = 80_000
QUICK_AJOIN_ROWS = 4_000
MOST_ROW_QUERIES = 10_000_000
"""Rows times queries of one run, so that one with very many queries ends as well."""
MOST_BATCH_QUERIES = 2_000
"""Batches times queries, for the same reason: each query has answers of its own in every batch."""
SECONDS_PER_BATCH = 2
RANGE_OVER_RATE = 5
"""About 0.1 results a query and input row, as in suite `queries`; with very many queries fewer."""
RANGE_OVER_QUERIES = 20
"""Constants enough that all queries differ."""
MOST_QUERIES_CHECKED = 100

DEFAULT_TRACE_ROWS = 600_000
QUICK_TRACE_ROWS = 10_000
JOBS, MACHINES = 5_000, 1_000
QUICK_MARKED_ROWS = 5_000
CLOSING_BATCHES = SIZE_S // SLIDE_S
"""So many batches pass before a window closes."""


def run(bench: Workbench) -> dict[str, object]:
    partitions = bench.options.cores
    repeats = bench.options.repeats_or(1)
    counts = QUICK_QUERY_COUNTS if bench.options.quick else QUERY_COUNTS
    with growth_is_meant():
        tpch = tpch_case(bench)
        with bench.steps.step("warming up"):
            run_mode(bench, tpch, {**MODES["shared"], "partitions": partitions})
        compared = compare(bench, tpch, partitions, repeats)
        figures: dict[str, dict[str, Any]] = {
            "tpch": {
                **compared,
                **_with_more_partitions(bench, tpch, compared["shipped_unshared"]),
                "cut": {name: query.cut for name, query in QUERIES.items()},
            },
            "monitoring": compare(bench, monitoring_case(bench), partitions, repeats),
        }
        ajoin = {str(count): compare(bench, ajoin_case(bench, count), partitions, repeats) for count in counts}
        change = measure_change(bench, partitions)
    with bench.steps.step("query-sets against specialized operators"):
        marks = compare_marks(QUICK_MARKED_ROWS, counts=counts, repeats=1) if bench.options.quick else compare_marks()
    is_equal = all(bool(each["results_equal"]) for each in (*figures.values(), *ajoin.values()))
    return {**figures, "ajoin": ajoin, "change": change, "marks": marks, "results_equal": is_equal}


def _with_more_partitions(bench: Workbench, case: PartitionCase, unshared_bytes: int) -> dict[str, object]:
    """Bytes only: more partitions than cores say nothing of times."""
    ratios = {}
    for partitions in () if bench.options.quick else MORE_PARTITIONS:
        with bench.steps.step(f"{case.name}: {partitions} partitions"):
            shared = run_mode(bench, case, {**MODES["shared"], "partitions": partitions})
        ratios[str(partitions)] = round(unshared_bytes / shared.shipped_bytes, 2)
    return {"shipped_ratio_by_partitions": ratios}


def tpch_case(bench: Workbench) -> PartitionCase:
    scale = bench.options.scale_or(DEFAULT_SCALE, QUICK_SCALE)
    batches = QUICK_BATCHES if bench.options.quick else BATCHES
    with bench.steps.step(f"TPC-H's tables at scale {scale}"):
        files = write_tpch(scale, batches, bench.fresh_folder("tpch"), COLUMNS, bench.options.seed)
        with DuckDbViews(select_sql(files), bench.options.cores) as duckdb:
            rows = {name: duckdb.rows(query.duckdb_sql) for name, query in QUERIES.items()}
    return PartitionCase(
        f"14 TPC-H queries, scale {scale}",
        tuple(StreamFolder(table, files.path(table), schema_ddl(files, table)) for table in COLUMNS),
        sum(files.rows_by_table.values()),
        {name: query.sql for name, query in QUERIES.items()},
        {name: Right(Answer(found.num_rows, 0), found) for name, found in rows.items()},
    )


def monitoring_case(bench: Workbench) -> PartitionCase:
    rows = bench.options.rows_or(DEFAULT_TRACE_ROWS, QUICK_TRACE_ROWS)
    batches = 2 * QUICK_BATCHES + CLOSING_BATCHES if bench.options.quick else BATCHES
    traces = ClusterTraces(rows, batches, JOBS, MACHINES, bench.options.seed)
    with bench.steps.step(f"traces of a cluster, {rows:,} rows"):
        stream = traces.write(bench.fresh_folder("traces"))
        with DuckDbViews(duckdb_views([stream]), bench.options.cores) as duckdb:
            found = {name: duckdb.rows(duckdb_sql(name)) for name in CLUSTER_QUERIES}
    right = {name: Right(Answer(table.num_rows, 0), table) for name, table in found.items()}
    return PartitionCase("cluster monitoring", (stream,), rows, CLUSTER_QUERIES, right)


def ajoin_case(bench: Workbench, count: int) -> PartitionCase:
    """With very many queries fewer rows and batches, the same for all modes; of these queries some are checked."""
    rows = min(bench.options.rows_or(DEFAULT_AJOIN_ROWS, QUICK_AJOIN_ROWS), MOST_ROW_QUERIES // count)
    batches = min(QUICK_BATCHES if bench.options.quick else BATCHES, max(QUICK_BATCHES, MOST_BATCH_QUERIES // count))
    rows_per_second = max(1, rows // (2 * batches * SECONDS_PER_BATCH))
    key_range = max(RANGE_OVER_RATE * rows_per_second, RANGE_OVER_QUERIES * count)
    workload = Workload(
        ("a", "b"),
        batches * SECONDS_PER_BATCH,
        rows_per_second,
        (key_range,) * ATTRIBUTE_COUNT,
        bench.options.seed,
        seconds_per_file=SECONDS_PER_BATCH,
    )
    files = bench.write(workload)
    sql_by_name = ajoin_queries(count, key_range, bench.options.seed)
    checked = list(sql_by_name)[:: -(-count // MOST_QUERIES_CHECKED)]
    with bench.steps.step(f"AJoin, {count} queries: the right answers, by DuckDB"), bench.duckdb(files) as duckdb:
        right = {name: Right(duckdb.answer(sql_by_name[name]), None) for name in checked}
    streams = tuple(StreamFolder(name, files.path(name), SCHEMA_DDL, "ts") for name in workload.streams)
    return PartitionCase(f"AJoin, {count} queries", streams, workload.total_rows, sql_by_name, right)
