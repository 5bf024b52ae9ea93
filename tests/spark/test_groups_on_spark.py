"""Random queries for groups through the real Session: the answers are Spark's own batch answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dovetail import Session
from dovetail.engine.options import EngineTuning
from dovetail.frontend.compile_sql import compile_sql
from tests.support.asserts import assert_same_answers
from tests.support.cases import EngineCase
from tests.support.generators.cases import CaseLimits, random_case
from tests.support.generators.queries import QueryLimits
from tests.support.oracles.answers import answers_of_table
from tests.support.oracles.case_oracle import CaseOracle
from tests.support.spark_runs import FileStreams, SparkBatchOracle

pytestmark = pytest.mark.spark

PATIENCE_S = 120
MANY_GROUPS = CaseLimits(
    max_queries=14, max_batches=5, late_queries=False, max_streams=3, queries=QueryLimits(3, aggregates=0.9)
)


def rich_case(seed: int) -> EngineCase:
    """The first case from `seed` on with windowed and running groups, and rows in every stream."""
    while True:
        case = random_case(seed, MANY_GROUPS)
        texts = [query.sql for query in case.queries]
        kinds = {"window(" in text for text in texts}
        has_rows = all(any(batch.get(stream.name) for batch in case.batches) for stream in case.streams)
        if len(texts) >= 8 and len(case.batches) >= 4 and len(kinds) == 2 and has_rows:
            return case
        seed += 1000


@pytest.mark.parametrize(("seed", "small_batch_rows"), [(301, 0), (302, 20_000)])
def test_a_drained_session_answers_groups_as_batch_sql(
    spark: SparkSession, tmp_path: Path, seed: int, small_batch_rows: int
) -> None:
    case = rich_case(seed)
    streams = FileStreams(spark, case, tmp_path / "streams")
    session = Session(
        spark,
        str(tmp_path / "checkpoint"),
        partitions=2,
        key_groups=16,
        tuning=EngineTuning(small_batch_rows=small_batch_rows),
    )
    for stream in case.streams:
        frame = streams.frame(stream)
        session.create_stream(stream.name, frame, event_time=stream.event_time, lateness=stream.lateness)
    for batch in range(len(case.batches)):
        streams.add_batch(batch)
    handles = {query.name: session.create_query(query.sql, name=query.name) for query in case.queries}
    session.start(trigger="available_now")
    session.await_termination(timeout=PATIENCE_S)
    answers = {name: answers_of_table(handle.results().toArrow()) for name, handle in handles.items()}
    from_files = {name: answers_of_table(handle.to_arrow()) for name, handle in handles.items()}
    session.stop()

    oracle, by_spark = CaseOracle(case), SparkBatchOracle(spark, case)
    bound = {query.name: compile_sql(query.sql, {s.name: s.stream for s in case.streams}) for query in case.queries}
    for query in case.queries:
        about = f"{query.name}: {query.sql}"
        assert handles[query.name].status.state == "running", handles[query.name].status.error
        expected = oracle.expected(query, 0)
        assert_same_answers(answers[query.name], expected, about)
        assert_same_answers(from_files[query.name], expected, about)
        if bound[query.name].aggregation is not None:
            by_batch_sql = by_spark.groups(query, bound[query.name], len(case.batches))
            assert_same_answers(by_batch_sql, expected, f"oracles differ: {about}")
