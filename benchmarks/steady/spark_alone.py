"""What Spark takes for one of the queries, by itself: of these it runs joins of two, and refuses longer chains.

With so many times more queries it takes so many times longer, if they follow one another at no further cost. Shorter
joins than ours and none of what many streaming queries cost beside their batches: it is a bound in Spark's favour.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from benchmarks.adhoc.queries import template_queries
from benchmarks.measure import median
from benchmarks.steady.mixed_queries import SHARE_OF_PATTERN
from benchmarks.steady.point import Point
from benchmarks.verify import Answer
from benchmarks.workbench import Workbench

QUERIES, QUICK_QUERIES = 3, 1
BATCHES, QUICK_BATCHES = 14, 4
SKIPPED_BATCHES, QUICK_SKIPPED_BATCHES = 6, 2
"""Until windows are full and Java has compiled."""


def pairs_of(point: Point, seed: int, count: int) -> Mapping[str, str]:
    drawn = template_queries(point.key_range, seed, SHARE_OF_PATTERN)
    pairs = (query for query in drawn if len(query.streams) == 2)
    return {f"q{number}": query.sql for number, query in enumerate(islice(pairs, count))}


def spark_alone(bench: Workbench, name: str, point: Point) -> dict[str, object]:
    """The median batch of a query that runs alone."""
    is_quick = bench.options.quick
    queries = pairs_of(point, bench.options.seed, QUICK_QUERIES if is_quick else QUERIES)
    batches, skipped = (QUICK_BATCHES, QUICK_SKIPPED_BATCHES) if is_quick else (BATCHES, SKIPPED_BATCHES)
    case = bench.case(name, bench.write(point.workload(batches, bench.options.seed)), queries)
    observed: dict[str, Answer] = {}
    batch_s: list[float] = []
    for query, sql in queries.items():
        with bench.steps.step(f"{name}: Spark, query {query} alone"):
            run = bench.run_spark(case.files, {query: sql}, 1)
        batch_s.append(median(run.time.batch_ms[skipped:]) / 1e3)
        with bench.duckdb(case.files) as duckdb:
            observed[query] = duckdb.answer_of_files(run.output_by_name[query])
    is_equal = bench.is_equal("Spark", case, observed)
    return {"batch_p50_s": round(median(batch_s), 3), "queries": len(queries), "results_equal": is_equal}
