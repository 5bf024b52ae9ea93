"""The number of partitions changes with nearly every batch of a real Session: the answers are Spark's own."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dovetail import Session
from dovetail.engine.options import EngineTuning
from dovetail.runtime.spark.executors import Executors, Manager
from tests.support.asserts import assert_same_answers
from tests.support.cases import EngineCase, keep_rows_in_time
from tests.support.generators.cases import CaseLimits, random_case
from tests.support.oracles.answers import answers_of_table
from tests.support.spark_runs import FileStreams, SparkBatchOracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PATIENCE_S = 180
LIMITS = CaseLimits(max_queries=5, max_batches=6, late_queries=False)


def case_of(seed: int) -> EngineCase:
    """The first case from `seed` on that has something to join in several batches."""
    while True:
        case = random_case(seed, LIMITS)
        if len(case.queries) >= 3 and len(case.batches) >= 5 and len(case.streams) >= 2:
            return case
        seed += 1000


@pytest.mark.parametrize(("seed", "max_bytes"), [(21, 2000), pytest.param(22, 6000, marks=pytest.mark.slow)])
def test_changing_partitions_change_no_answer(spark: SparkSession, tmp_path: Path, seed: int, max_bytes: int) -> None:
    case = case_of(seed)
    streams = FileStreams(spark, case, tmp_path / "streams")
    session = Session(
        spark,
        tmp_path / "checkpoint",
        partitions=1,
        key_groups=16,
        elastic=True,
        max_partitions=5,
        max_bytes_per_partition=max_bytes,
        tuning=EngineTuning(small_batch_rows=0, scale_after=1),
    )
    for stream in case.streams:
        frame = streams.frame(stream)
        session.create_stream(stream.name, frame, event_time=stream.event_time, lateness=stream.lateness)
    for batch in range(len(case.batches)):
        streams.add_batch(batch)
    handles = {query.name: session.create_query(query.sql, name=query.name) for query in case.queries}
    counts: set[int] = set()
    session.engine.answers.listen(lambda news: counts.add(news.figures.scale.next_partitions))
    session.start(trigger="available_now")
    session.await_termination(timeout=PATIENCE_S)
    answers = {name: answers_of_table(handle.results().toArrow()) for name, handle in handles.items()}
    reasons = [reason for change in session.engine.plans.changes for reason in change.reasons]
    session.stop()
    assert len(counts) > 1
    assert any("memory load" in reason and "partitions instead of" in reason for reason in reasons)
    oracle = SparkBatchOracle(spark, case, keep_rows_in_time(case))
    for query in case.queries:
        assert_same_answers(answers[query.name], oracle.expected(query, complete_from=0), f"{query.name}: {query.sql}")


def test_a_local_master_has_no_executors_and_that_is_said_once(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    executors = Executors(spark)
    with caplog.at_level(logging.INFO, "dovetail"):
        executors.follow(2)
        executors.follow(4)
    assert executors.manager is Manager.NOBODY
    assert executors.running is None
    assert executors.cores == spark.sparkContext.defaultParallelism
    assert len([record for record in caplog.records if "number of executors" in record.message]) == 1
