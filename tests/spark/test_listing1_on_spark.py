"""SASPAR's Listing 1 through the real Session: an aggregate and a join over the same purchases."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.data.workloads import write_files
from dovetail import Session
from dovetail.engine.options import EngineTuning
from tests.support.asserts import assert_same_answers
from tests.support.listing1 import AGGREGATE, JOIN, LATENESS, GameRows, expected_answers
from tests.support.oracles.answers import answers_of_table

pytestmark = pytest.mark.spark

PATIENCE_S = 120
DDL_BY_STREAM = {
    "PURCHASES": "userID bigint, gemPackID bigint, price bigint, ts timestamp",
    "ADS": "userID bigint, gemPackID bigint, ts timestamp",
}


@pytest.mark.parametrize("exchange", ["references", "rows"])
def test_both_queries_of_listing_1_run_as_written(spark: SparkSession, tmp_path: Path, exchange: str) -> None:
    batches = list(GameRows().batches())
    session = Session(
        spark, str(tmp_path / "checkpoint"), partitions=2, exchange=exchange, tuning=EngineTuning(small_batch_rows=0)
    )
    for stream, ddl in DDL_BY_STREAM.items():
        write_files(tmp_path / stream, (tables[stream] for tables in batches))
        frame = spark.readStream.schema(ddl).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / stream))
        session.create_stream(stream, frame, event_time="ts", lateness=LATENESS)
    queries = {
        "aggregate": session.create_query(AGGREGATE, name="aggregate"),
        "join": session.create_query(JOIN, name="join"),
    }
    session.start(trigger="available_now")
    session.await_termination(timeout=PATIENCE_S)
    answers = {name: answers_of_table(query.to_arrow()) for name, query in queries.items()}
    session.stop()
    for name, expected in expected_answers(batches).items():
        assert_same_answers(answers[name], expected, name)
