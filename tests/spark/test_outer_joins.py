"""Outer, semi and anti joins through the real Session, against Spark's own batch answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dovetail import Session
from dovetail.engine.options import EngineTuning
from tests.support.asserts import assert_same_answers
from tests.support.cases import EngineCase
from tests.support.generators.outer_cases import OUTER_LIMITS, flushed, random_outer_case
from tests.support.oracles.answers import answers_of_table
from tests.support.spark_runs import FileStreams, SparkBatchOracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PATIENCE_S = 120
MANY_QUERIES = replace(OUTER_LIMITS, min_streams=2, max_queries=12)


def case_with_queries(seed: int) -> EngineCase:
    """The first case from `seed` on that is rich enough to be worth a Spark session."""
    while True:
        case = flushed(random_outer_case(seed, MANY_QUERIES))
        if len(case.queries) >= 8 and len(case.batches) >= 4 and all(stream.event_time for stream in case.streams):
            return case
        seed += 1000


@pytest.mark.parametrize(("seed", "small_batch_rows"), [(1, 0), (2, 20_000)], ids=["stages", "one task"])
def test_once_all_rows_are_decided_the_answers_are_those_of_batch_sql(
    spark: SparkSession, tmp_path: Path, seed: int, small_batch_rows: int
) -> None:
    case = case_with_queries(seed)
    streams = FileStreams(spark, case, tmp_path / "streams")
    session = Session(
        spark,
        str(tmp_path / "checkpoint"),
        partitions=2,
        key_groups=16,
        tuning=EngineTuning(small_batch_rows=small_batch_rows),
    )
    for stream in case.streams:
        session.create_stream(
            stream.name, streams.frame(stream), event_time=stream.event_time, lateness=stream.lateness
        )
    for batch in range(len(case.batches)):
        streams.add_batch(batch)
    handles = {query.name: session.create_query(query.sql, name=query.name) for query in case.queries}
    session.start(trigger="available_now")
    session.await_termination(timeout=PATIENCE_S)
    answers = {name: answers_of_table(handle.results().toArrow()) for name, handle in handles.items()}
    session.stop()

    ordinary = SparkBatchOracle(spark, replace(case, batches=case.batches[:-1]))
    last = SparkBatchOracle(spark, replace(case, batches=({}, case.batches[-1])))
    for query in case.queries:
        expected, actual = ordinary.expected(query, 0), answers[query.name]
        # Rows of the last batch have no later one that decides them.
        undecided = (actual - expected) & last.expected(query, 0)
        assert_same_answers(actual - undecided, expected, f"{query.name}: {query.sql}")
