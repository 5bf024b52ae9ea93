"""A session that is stopped at any moment and started again answers as if it had never stopped."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from dovetail import Session
from dovetail.engine.options import EngineTuning
from tests.support.asserts import assert_same_answers
from tests.support.cases import EngineCase, keep_rows_in_time
from tests.support.generators.cases import CaseLimits, random_case
from tests.support.generators.queries import QueryLimits
from tests.support.oracles.answers import DuckDbOracle, answers_of_table
from tests.support.spark_runs import FileStreams, await_that

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PATIENCE_S = 120
LIMITS = CaseLimits(max_streams=2, max_queries=4, max_batches=8, late_queries=False, queries=QueryLimits(3))


def case_of_many_batches(seed: int) -> EngineCase:
    while True:
        case = random_case(seed, LIMITS)
        oracle = DuckDbOracle(case)
        if len(case.batches) >= 6 and sum(bool(oracle.expected(query, 0)) for query in case.queries) >= 2:
            return case
        seed += 1


def open_session(spark: SparkSession, case: EngineCase, streams: FileStreams, folder: Path) -> Session:
    session = Session(
        spark, str(folder / "checkpoint"), partitions=2, key_groups=16, tuning=EngineTuning(small_batch_rows=0)
    )
    for stream in case.streams:
        session.create_stream(
            stream.name, streams.frame(stream), event_time=stream.event_time, lateness=stream.lateness
        )
    for query in case.queries:
        session.create_query(query.sql, name=query.name)
    return session


def test_stops_at_random_moments_lose_and_double_nothing(spark: SparkSession, tmp_path: Path) -> None:
    case = case_of_many_batches(0)
    streams = FileStreams(spark, case, tmp_path / "streams")
    for batch in range(len(case.batches)):
        streams.add_batch(batch)
    rng = Random(0)
    for _ in range(3):
        session = open_session(spark, case, streams, tmp_path)
        goal = session.engine.head.batch + rng.randint(0, 1)
        session.start()
        await_that(lambda goal=goal, session=session: session.engine.head.batch >= goal)
        session.stop()
    session = open_session(spark, case, streams, tmp_path)
    session.start(trigger="available_now")
    session.await_termination(timeout=PATIENCE_S)
    oracle = DuckDbOracle(case, keep_rows_in_time(case))
    for query in case.queries:
        answers = answers_of_table(session.query(query.name).results().toArrow())
        assert_same_answers(answers, oracle.expected(query, complete_from=0), query.sql)
    session.stop()
