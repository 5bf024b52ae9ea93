"""Suite `adhoc`: queries come and go while data flow (AJoin's scenarios SC1 and SC2).

    throughput  n queries run and files wait all the time: quiet batches, then batches while k queries a second are
                created and as many dropped (SC2), then quiet ones again; rows over the time from commit to commit
    growth      files arrive at a steady rate: k queries a second are created until n run (SC1), then k a second are
                created and dropped (SC2); the session stops, starts again, and takes still more queries

Joins of two to five streams are mixed. Every answer of every query is compared with DuckDB's for its lifetime.
"""

from __future__ import annotations

from benchmarks.adhoc.growth import measure_growth
from benchmarks.adhoc.queries import template_queries
from benchmarks.adhoc.scenario import Shape
from benchmarks.adhoc.throughput import measure_throughput
from benchmarks.data.workloads import STREAM_NAMES, Workload
from benchmarks.workbench import Workbench

DEFAULT_ROWS = 8_000_000
QUICK_ROWS = 100_000
# Of a row's 2 * 2 s * rate / range partners (2 s: the mean window) selections leave half at every further stream.
RANGE_OVER_RATE = 5
SMALLEST_RANGE = 1000
SHARE_OF_PATTERN = 0.5
FULL = Shape(400, per_second=10, churned=100, phase_s=25.0, grown=500, interval_s=2.0, registered=2000)
QUICK = Shape(100, per_second=5, churned=8, phase_s=3.0, grown=16, interval_s=0.5, registered=24)


def run(bench: Workbench) -> dict[str, object]:
    shape = QUICK if bench.options.quick else FULL
    rows = bench.options.rows_or(DEFAULT_ROWS, QUICK_ROWS)
    rows_per_second = max(1, rows // (len(STREAM_NAMES) * shape.seconds_of_data))
    key_range = max(SMALLEST_RANGE, RANGE_OVER_RATE * rows_per_second)
    seed = bench.options.seed
    files = bench.write(Workload(STREAM_NAMES, shape.seconds_of_data, rows_per_second, (key_range,) * 6, seed))
    queries = template_queries(key_range, seed, SHARE_OF_PATTERN)
    throughput = measure_throughput(bench, shape, files, queries)
    growth = measure_growth(bench, shape, files, queries)
    wrong = {**throughput.wrong, **growth.wrong}
    for name, difference in list(wrong.items())[:5]:
        bench.steps.note(f"[red]{name}: {difference}[/red]")
    return {
        **throughput.figures,
        **growth.figures,
        "rows_per_file": rows_per_second * len(STREAM_NAMES),
        "queries_checked": throughput.checked + growth.checked,
        "wrong_results": len(wrong),
        "results_equal": not wrong,
    }
