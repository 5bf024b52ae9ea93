"""The oracle of groups is Spark's own batch SQL: types, NULL and NaN keys, empty groups, rounding of decimals."""

from __future__ import annotations

import os

import pytest
from pyspark.sql import SparkSession

from dovetail.frontend.compile_sql import compile_sql
from dovetail.query.join_kind import JoinKind
from tests.support.asserts import assert_same_answers
from tests.support.cases import keep_rows_in_time
from tests.support.generators.cases import GROUPS, random_case
from tests.support.generators.outer_cases import OUTER_GROUPS, random_outer_case
from tests.support.oracles.answers import NestedLoopOracle
from tests.support.oracles.outer import OuterOracle
from tests.support.spark_runs import SparkBatchOracle

pytestmark = pytest.mark.spark

CASE_COUNT = int(os.environ.get("DOVETAIL_SPARK_CASES", "6"))
FIRST_SEED = int(os.environ.get("DOVETAIL_SEED", "0")) + 2_000_000


def test_groups_of_nested_loops_are_those_of_spark(spark: SparkSession) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + CASE_COUNT):
        case = random_case(seed, GROUPS)
        by_loops, by_spark = NestedLoopOracle(case), SparkBatchOracle(spark, case)
        streams = {stream.name: stream.stream for stream in case.streams}
        until = len(case.batches)
        for query in case.queries:
            bound = compile_sql(query.sql, streams)
            if bound.aggregation is None:
                continue
            about = f"seed {seed}, {query.name}: {query.sql}"
            assert_same_answers(by_loops.groups(bound, 0, 0, until), by_spark.groups(query, bound, until), about)


class Decided(OuterOracle):
    """All rows are there, and none waits for a partner any more: as batch SQL sees them."""

    def _watermarks(self, name: str) -> list[int | None]:  # noqa: ARG002 - all streams are alike
        return [2**62] * len(self._case.batches)


def test_groups_of_outer_joins_are_those_of_spark(spark: SparkSession) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + CASE_COUNT):
        case = random_outer_case(seed, OUTER_GROUPS)
        by_loops, by_spark = Decided(case, keep_rows_in_time(case)), SparkBatchOracle(spark, case)
        streams = {stream.name: stream.stream for stream in case.streams}
        until = len(case.batches)
        for query in case.queries:
            bound = compile_sql(query.sql, streams)
            if bound.aggregation is None or bound.kind is JoinKind.INNER:
                continue
            about = f"seed {seed}, {query.name}: {query.sql}"
            assert_same_answers(by_loops.groups(bound, 0, 0, until), by_spark.groups(query, bound, until), about)
