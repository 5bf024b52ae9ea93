"""The suite `adhoc`: its queries, how it counts, and that it notices a wrong answer."""

from __future__ import annotations

from io import StringIO
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.adhoc.check import LifetimeOracle, lifetime_sql
from benchmarks.adhoc.queries import SIZES, TemplateQuery, pattern, similarity, template_queries
from benchmarks.adhoc.scenario import deploy_batches, rows_per_s
from benchmarks.adhoc.session import Asked, Batch, batch_by_file
from benchmarks.data.workloads import ATTRIBUTE_COUNT, STREAM_NAMES, StreamFiles, Workload, write_workload
from benchmarks.measure import Steps
from benchmarks.options import BenchError, BenchOptions
from benchmarks.report.table import figure_rows
from benchmarks.suites import adhoc
from benchmarks.workbench import Workbench

RATE = 20
WORKLOAD = Workload(STREAM_NAMES, 6, RATE, (5,) * ATTRIBUTE_COUNT)


def batch(number: int, began_at: float, files: int = 1) -> Batch:
    streams = [{"name": stream, "numInputRows": files * RATE} for stream in STREAM_NAMES]
    return Batch(number, began_at, began_at + 0.9, files * RATE * len(STREAM_NAMES), {"streams": streams})


def asked(asked_at: float, created_batch: int) -> Asked:
    query: Any = SimpleNamespace(name="q", status=SimpleNamespace(created_batch=created_batch))
    return Asked(query, pattern(2), asked_at, 1.0)


def test_queries_have_all_sizes_and_no_selection_twice() -> None:
    queries = list(islice(template_queries(20_000, seed=1, share_of_pattern=0.5), 200))
    assert {len(query.streams) for query in queries} == set(SIZES)
    selections = [selection for query in queries for selection in query.selections]
    assert len(set(selections)) == len(selections)


def test_the_same_seed_gives_the_same_queries() -> None:
    one, other = ([q.sql for q in islice(template_queries(1000, 7, 0.5), 20)] for _ in range(2))
    assert one == other


def test_similarity_is_the_papers_example() -> None:
    """A.a = B.a against the pattern A.a = B.b: two common sources, one with a common join attribute."""
    one, other = (TemplateQuery((keys,), (), 1) for keys in ((0, 0), (0, 1)))
    assert similarity(one, other) == 2 * 1 / 2**2
    assert similarity(pattern(5), pattern(5)) == 1.0


def test_a_larger_share_of_the_pattern_gives_more_similar_queries() -> None:
    means = []
    for share in (0.0, 0.5, 1.0):
        queries = islice(template_queries(20_000, 1, share), 100)
        means.append(sum(similarity(query, pattern(len(query.streams))) for query in queries))
    assert means == sorted(means)
    assert means[2] == 100


def test_the_next_batch_that_begins_after_a_request_counts_one() -> None:
    batches = {number: batch(number, float(number)) for number in range(5)}
    assert deploy_batches(asked(1.5, created_batch=2), batches) == 1
    assert deploy_batches(asked(1.5, created_batch=3), batches) == 2
    assert deploy_batches(asked(-1.0, created_batch=0), batches) == 1


def test_a_rate_counts_the_time_between_batches() -> None:
    assert rows_per_s([batch(0, 0.0), batch(1, 2.0), batch(2, 4.0)]) == pytest.approx(2 * RATE * 5 / 4)


def test_files_are_found_in_the_batches_that_report_their_rows() -> None:
    files = StreamFiles(WORKLOAD, Path())
    found = batch_by_file({0: batch(0, 0.0), 1: batch(1, 1.0, files=2)}, files)
    assert found["c"] == [0, 1, 1]


def test_a_part_of_a_file_in_a_batch_is_an_error() -> None:
    half = Batch(0, 0.0, 1.0, 1, {"streams": [{"name": "a", "numInputRows": RATE // 2}]})
    with pytest.raises(BenchError, match="a part of a file"):
        batch_by_file({0: half}, StreamFiles(WORKLOAD, Path()))


def test_a_lifetime_leaves_out_results_before_it_after_it_and_of_rows_it_never_saw(tmp_path: Path) -> None:
    files = write_workload(WORKLOAD, tmp_path / "data")
    arrived = {stream: list(range(WORKLOAD.file_count)) for stream in STREAM_NAMES}
    query = TemplateQuery(((0, 1),), ("a.x0 >= 0", "b.x0 >= 0"), 3)
    with LifetimeOracle(files, arrived, 2) as oracle:
        everything = oracle.answer(query.sql.replace("FROM a JOIN b", "FROM all_a AS a JOIN all_b AS b"))
        assert oracle.answer(lifetime_sql(query, 0, 0, 6)) == everything
        parts = [oracle.answer(lifetime_sql(query, 0, created, created + 1)).row_count for created in range(6)]
        assert sum(parts) == everything.row_count
        assert all(parts)
        assert oracle.answer(lifetime_sql(query, 4, 4, 6)).row_count < sum(parts[4:])


@pytest.mark.spark
@pytest.mark.slow
def test_the_suite_finds_no_wrong_answer_and_reports_every_key(spark: SparkSession, tmp_path: Path) -> None:
    steps = Steps(Console(file=StringIO()))
    figures: dict[str, Any] = adhoc.run(Workbench(spark, tmp_path, BenchOptions(quick=True, cores=2), steps))
    assert figures["wrong_results"] == 0
    assert figures["queries_checked"] > adhoc.QUICK.churned + adhoc.QUICK.grown
    assert figures["registered_2000"] == adhoc.QUICK.registered
    assert set(figures["sustained_rows_per_s"]) == {"before", "during", "after"}
    assert {
        "deploy_p50_batches",
        "deploy_p99_batches",
        "deploy_p99_s",
        "create_p99_ms",
        "latency_p50_s",
        "latency_p99_s",
        "throughput_ratio",
        "restart_s",
        "rest_created",
        "similarity",
    } <= figures.keys()
    assert figure_rows({"suite": "adhoc", **figures})
