"""Aggregates whose joined rows are never built, through the real Session: Spark's own batch answers (D4)."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dovetail import Session
from dovetail.engine.options import EngineTuning
from tests.support.asserts import assert_same_answers
from tests.support.oracles.answers import answers_of_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

BATCHES, ROWS, KEYS = 3, 400, 4
JOIN = "FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL 20 SECONDS AND a.ts + INTERVAL 20 SECONDS"
QUERIES = {
    "totals": f"SELECT COUNT(*) AS n, SUM(a.v) AS x, SUM(b.price) AS y, AVG(b.v) AS z {JOIN}",
    "by_key": f"SELECT a.k, COUNT(*) AS n, SUM(b.v) AS x, MIN(b.name) AS l, MAX(a.price) AS h {JOIN} GROUP BY a.k",
    "by_other": f"SELECT b.name, COUNT(a.v, b.v) AS n, SUM(a.price) AS x {JOIN} WHERE a.v > 10 GROUP BY b.name",
    "by_text": "SELECT a.name, COUNT(*) AS n, SUM(b.v) AS x FROM a JOIN b USING (name, k) GROUP BY a.name",
}
SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        ("name", pa.string()),
        ("v", pa.int32()),
        ("price", pa.decimal128(12, 2)),
        ("ts", pa.timestamp("us", "UTC")),
    ]
)


def rows_of(rng: Random, batch: int) -> pa.Table:
    times = sorted(rng.randrange(batch * 60_000_000, (batch + 1) * 60_000_000) for _ in range(ROWS))
    columns = {
        "k": [rng.choice([None, *range(KEYS)]) for _ in range(ROWS)],
        "name": [rng.choice(["x", "y", "z", None]) for _ in range(ROWS)],
        "v": [rng.choice([None, rng.randrange(-1000, 1000)]) for _ in range(ROWS)],
        "price": [Decimal(rng.randrange(-(10**6), 10**6)) / 100 for _ in range(ROWS)],
        "ts": times,
    }
    return pa.table(columns, SCHEMA)


def test_answers_are_those_of_batch_sql(spark: SparkSession, tmp_path: Path) -> None:
    rng = Random(5)
    for stream in ("a", "b"):
        (tmp_path / stream).mkdir()
        for batch in range(BATCHES):
            pq.write_table(rows_of(rng, batch), tmp_path / stream / f"{batch}.parquet")
    session = Session(
        spark,
        str(tmp_path / "checkpoint"),
        partitions=2,
        max_pairs_per_batch=50_000,
        tuning=EngineTuning(small_batch_rows=0),
    )
    for stream in ("a", "b"):
        static = spark.read.parquet(str(tmp_path / stream))
        static.createOrReplaceTempView(stream)
        reader = spark.readStream.schema(static.schema).option("maxFilesPerTrigger", 1)
        session.create_stream(stream, reader.parquet(str(tmp_path / stream)), event_time="ts", lateness="1 hour")
    handles = {name: session.create_query(sql, name=name) for name, sql in QUERIES.items()}
    session.start(trigger="available_now")
    session.await_termination(timeout=120)
    answers = {name: answers_of_table(handle.results().toArrow()) for name, handle in handles.items()}
    errors = {name: handle.status.error for name, handle in handles.items()}
    session.stop()
    # Building the joined rows would pass the limit of pairs.
    assert errors == dict.fromkeys(QUERIES)
    for name, sql in QUERIES.items():
        assert_same_answers(answers[name], answers_of_table(spark.sql(sql).toArrow()), sql)
