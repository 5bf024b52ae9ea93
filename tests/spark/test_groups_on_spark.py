"""Queries for groups through the real Session, with a stage for groups behind the probes: Spark's batch answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dovetail import Session
from dovetail.frontend.compile_sql import compile_sql
from dovetail.testing.asserts import assert_same_answers
from dovetail.testing.cases import EngineCase
from dovetail.testing.generators import CLOSING_GROUPS, GROUPS, CaseLimits, random_case
from dovetail.testing.oracle import answers_of_table
from dovetail.testing.spark_runs import FileStreams, SparkBatchOracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PATIENCE_S = 120


def case_with_groups(seed: int, limits: CaseLimits) -> EngineCase:
    """The first case from `seed` on with several queries, all there from the start, and several batches."""
    while True:
        case = random_case(seed, limits)
        from_start = all(query.created_at == 0 and query.dropped_at is None for query in case.queries)
        if from_start and len(case.queries) >= 3 and len(case.batches) >= 4:
            return case
        seed += 1000


@pytest.mark.parametrize(
    ("seed", "limits", "small_batch_rows"), [(1, GROUPS, 0), (2, CLOSING_GROUPS, 0), (3, CLOSING_GROUPS, 20_000)]
)
def test_a_drained_session_answers_groups_as_batch_sql(
    spark: SparkSession, tmp_path: Path, seed: int, limits: CaseLimits, small_batch_rows: int
) -> None:
    case = case_with_groups(seed, limits)
    files = FileStreams(spark, case, tmp_path / "streams")
    options = {"partitions": 2, "key_groups": 16, "small_batch_rows": small_batch_rows}
    session = Session(spark, str(tmp_path / "checkpoint"), **options)
    for stream in case.streams:
        session.create_stream(stream.name, files.frame(stream), event_time=stream.event_time, lateness=stream.lateness)
    for batch in range(len(case.batches)):
        files.add_batch(batch)
    handles = {query.name: session.create_query(query.sql, name=query.name) for query in case.queries}
    session.start(trigger="available_now")
    session.await_termination(timeout=PATIENCE_S)
    oracle = SparkBatchOracle(spark, case)
    streams = {stream.name: stream.stream for stream in case.streams}
    for query in case.queries:
        expected = oracle.groups(query, compile_sql(query.sql, streams), len(case.batches))
        found = answers_of_table(handles[query.name].results().toArrow())
        assert_same_answers(found, expected, f"{query.name}: {query.sql}")
    session.stop()
