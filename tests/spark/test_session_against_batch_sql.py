"""Random query sets through the real Session: the streamed answers are Spark's own batch answers.

Joins for rows by keys and by other conditions, groups, and outer joins run together, in one session for each way to run
a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dovetail.frontend.compile_sql import compile_sql
from tests.support.asserts import assert_same_answers
from tests.support.cases import EngineCase, QueryCase
from tests.support.generators.cases import THETAS, CaseLimits, random_case
from tests.support.generators.outer_cases import OUTER_LIMITS, flushed, random_outer_case
from tests.support.generators.queries import QueryLimits
from tests.support.oracles.answers import Answers, DuckDbOracle
from tests.support.oracles.case_oracle import CaseOracle
from tests.support.spark_runs import SparkBatchOracle, drain, together

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

KEYS = CaseLimits(max_queries=10, max_batches=5, late_queries=False, stream_name="r")
THETA = replace(THETAS, max_queries=10, max_batches=5, late_queries=False, stream_name="t")
GROUPS = CaseLimits(
    max_queries=10,
    max_batches=5,
    late_queries=False,
    max_streams=3,
    queries=QueryLimits(3, aggregates=0.9),
    stream_name="g",
)
OUTER = replace(OUTER_LIMITS, min_streams=2, max_queries=10, max_batches=5, stream_name="o")
MANY = 7


def rich(make: Callable[[int], EngineCase], seed: int, is_rich: Callable[[EngineCase], bool]) -> EngineCase:
    """The first case from `seed` on that is worth to run on Spark."""
    while True:
        case = make(seed)
        has_rows = all(any(batch.get(stream.name) for batch in case.batches) for stream in case.streams)
        if len(case.queries) >= MANY and len(case.batches) >= 4 and has_rows and is_rich(case):
            return case
        seed += 1000


def rows_case(seed: int, limits: CaseLimits) -> EngineCase:
    return rich(lambda each: random_case(each, limits), seed, lambda case: len(case.streams) >= 2)


def groups_case(seed: int) -> EngineCase:
    """With windowed and running groups."""

    def has_both(case: EngineCase) -> bool:
        return len({"window(" in query.sql for query in case.queries}) == 2

    return rich(lambda each: random_case(each, GROUPS), seed, has_both)


def outer_case(seed: int) -> EngineCase:
    def has_times(case: EngineCase) -> bool:
        return all(stream.event_time for stream in case.streams)

    return rich(lambda each: flushed(random_outer_case(each, OUTER)), seed, has_times)


def check_rows(spark: SparkSession, case: EngineCase, answers: dict[str, Answers]) -> None:
    by_spark, by_duckdb = SparkBatchOracle(spark, case), DuckDbOracle(case)
    for query in case.queries:
        expected = by_spark.expected(query, complete_from=0)
        assert_same_answers(by_duckdb.expected(query, complete_from=0), expected, f"oracles differ: {about(query)}")
        assert_same_answers(answers[query.name], expected, about(query))


def check_groups(spark: SparkSession, case: EngineCase, answers: dict[str, Answers]) -> None:
    oracle, by_spark = CaseOracle(case), SparkBatchOracle(spark, case)
    streams = {stream.name: stream.stream for stream in case.streams}
    for query in case.queries:
        expected, bound = oracle.expected(query, 0), compile_sql(query.sql, streams)
        assert_same_answers(answers[query.name], expected, about(query))
        if bound.aggregation is not None:
            by_batch_sql = by_spark.groups(query, bound, len(case.batches))
            assert_same_answers(by_batch_sql, expected, f"oracles differ: {about(query)}")


def check_outer(spark: SparkSession, case: EngineCase, answers: dict[str, Answers]) -> None:
    ordinary = SparkBatchOracle(spark, replace(case, batches=case.batches[:-1]))
    last = SparkBatchOracle(spark, replace(case, batches=({}, case.batches[-1])))
    for query in case.queries:
        expected, actual = ordinary.expected(query, 0), answers[query.name]
        # Rows of the last batch have no later one that decides them.
        undecided = (actual - expected) & last.expected(query, 0)
        assert_same_answers(actual - undecided, expected, about(query))


def about(query: QueryCase) -> str:
    return f"{query.name}: {query.sql}"


@pytest.mark.parametrize(
    ("small_batch_rows", "keys", "thetas", "groups", "outer"),
    [
        pytest.param(0, 101, 300, 301, 1, marks=pytest.mark.slow, id="stages"),
        pytest.param(20_000, 200, 304, 302, 2, id="one task"),  # 200: times without zone
    ],
)
def test_drained_sessions_answer_as_batch_sql(
    spark: SparkSession, tmp_path: Path, small_batch_rows: int, keys: int, thetas: int, groups: int, outer: int
) -> None:
    cases = {
        "keys": rows_case(keys, KEYS),
        "thetas": rows_case(thetas, THETA),
        "groups": groups_case(groups),
        "outer": outer_case(outer),
    }
    checks = {"keys": check_rows, "thetas": check_rows, "groups": check_groups, "outer": check_outer}
    run = drain(
        spark,
        together(cases),
        tmp_path,
        read_by_spark=[f"{name}_{case.queries[0].name}" for name, case in cases.items()],
        small_batch_rows=small_batch_rows,
        keep_intermediates="always",
    )
    assert set(run.errors.values()) == {None}
    assert run.by_spark == {name: run.answers[name] for name in run.by_spark}
    for name, case in cases.items():
        checks[name](spark, case, {query.name: run.answers[f"{name}_{query.name}"] for query in case.queries})
