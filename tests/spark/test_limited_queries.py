"""On Spark: one query of several explodes; it stops with its error, the others' answers are those of batch SQL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dovetail import Session
from dovetail.engine.options import EngineTuning
from tests.support.asserts import assert_same_answers
from tests.support.cases import EngineCase, QueryCase, StreamCase, moment_of
from tests.support.oracles.answers import DuckDbOracle, answers_of_table
from tests.support.spark_runs import FileStreams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS, LIMIT, SECOND = 2_000, 100_000, 1_000_000
ALL = "SELECT a.v AS x, b.v AS y FROM a JOIN b ON a.k = b.k"
TEXTS = {
    "explodes": ALL,
    "few": f"{ALL} WHERE a.v < 20 AND b.v < 30",
    "three": f"{ALL} JOIN a c ON c.k = b.k WHERE a.v < 5 AND b.v < 5 AND c.v < 5",
}


def exploding_case() -> EngineCase:
    """Batch 1 has one key only: four million pairs."""
    streams = tuple(StreamCase(name, (("k", "int"), ("v", "int"), ("ts", "timestamp")), "ts", 0) for name in "ab")
    batches = []
    for batch in range(3):
        rows = tuple((0 if batch == 1 else row, row, moment_of(batch * SECOND)) for row in range(ROWS))
        batches.append({"a": rows, "b": rows})
    queries = tuple(QueryCase(name, text, text, text) for name, text in TEXTS.items())
    return EngineCase(streams, tuple(batches), queries)


def test_an_exploding_query_stops_and_the_others_stay_exact(spark: SparkSession, tmp_path: Path) -> None:
    case = exploding_case()
    files = FileStreams(spark, case, tmp_path / "streams")
    for batch in range(len(case.batches)):
        files.add_batch(batch)
    session = Session(
        spark,
        tmp_path / "checkpoint",
        partitions=2,
        key_groups=16,
        tuning=EngineTuning(small_batch_rows=0, max_pairs=50_000),
    )
    for stream in case.streams:
        session.create_stream(stream.name, files.frame(stream), event_time="ts")
    for query in case.queries:
        limit = LIMIT if query.name == "explodes" else None
        session.create_query(query.sql, name=query.name, max_results_per_batch=limit)
    session.start(trigger="available_now")
    session.await_termination(timeout=120)
    status = session.query("explodes").status
    assert (status.state, status.failed_batch, status.total_rows) == ("quarantined", 1, ROWS)
    assert "found more than 100,000 results in batch 1" in (status.error or "")
    oracle = DuckDbOracle(case)
    for query in case.queries:
        if query.name != "explodes":
            answers = answers_of_table(session.query(query.name).results().toArrow())
            assert_same_answers(answers, oracle.expected(query, 0), query.sql)
    session.stop()
