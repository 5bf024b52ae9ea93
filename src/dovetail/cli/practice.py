"""What `dovetail warm-up` runs, so that later processes find it done: python -m dovetail.cli.practice kernels|classes.

`kernels` pushes a few rows through queries of every kind in this process: what they use is compiled, and kept on disk.
`classes OPTION ...` runs a session on a Spark of its own, whose Java is given the options, and ends it.
"""

from __future__ import annotations

import datetime
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from dovetail.api import Session
from dovetail.optimizer.placement.solvers.search import compile_moves
from dovetail.runtime.spark.local_session import end_local_spark, local_spark
from dovetail.testing.local_session import LocalSession

WRITING_PATIENCE_S = 300.0
"""How long Java may take to write its archive."""
_TEXTS = """
    SELECT a.s, b.d FROM a JOIN b ON a.i = b.i AND IN_TIME WHERE a.d > 1 AND b.s LIKE 'x%';
    SELECT a.i, b.i FROM a JOIN b ON a.s = b.s AND IN_TIME;
    SELECT a.i, b.m FROM a JOIN b ON a.i = b.i AND a.s = b.s AND IN_TIME AND a.d <> b.d;
    SELECT a.i FROM a JOIN b ON a.m = b.m WITHIN 10 SECONDS;
    SELECT a.i FROM a JOIN b ON ABS(a.d - b.d) <= 2 WITHIN 10 SECONDS;
    SELECT a.i, c.s FROM a JOIN b ON a.i = b.i AND IN_TIME JOIN b c ON c.s = a.s AND c.ts = a.ts;
    SELECT a.s, SUMS FROM a JOIN b ON a.i = b.i AND IN_TIME GROUP BY a.s, window(a.ts, '2 seconds');
    SELECT a.i, SUMS FROM a JOIN b ON a.i = b.i AND IN_TIME GROUP BY a.i;
    SELECT a.s, COUNT(DISTINCT a.i) FROM a GROUP BY a.s;
    SELECT a.i, b.d FROM a LEFT JOIN b ON a.i = b.i AND IN_TIME;
    SELECT a.i FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.s = b.s AND IN_TIME);
    SELECT a.i FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.i = b.i AND IN_TIME)
"""
QUERIES = tuple(
    text.strip()
    .replace("IN_TIME", "b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS")
    .replace("SUMS", "COUNT(*), SUM(a.d), AVG(b.i), MIN(a.s), MAX(b.ts), SUM(b.m)")
    for text in _TEXTS.split(";")
)
"""Joins by keys of every type and of several columns, bands, three streams, groups, rows without a partner."""
_EPOCH = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def practise_kernels(folder: Path) -> None:
    with LocalSession(folder) as session:
        for name in ("a", "b"):
            session.create_stream(name, _rows(0).schema, event_time="ts", lateness="1 second")
        for number, sql in enumerate(QUERIES):
            session.create_query(sql, f"q{number}")
        for batch in range(3):
            session.push({"a": _rows(batch), "b": _rows(batch)}, splits=2)
    compile_moves()


def _rows(batch: int) -> pa.Table:
    numbers = range(batch * 100, batch * 100 + 100)
    return pa.table(
        {
            "i": pa.array([number % 10 for number in numbers], pa.int64()),
            "s": [f"x{number % 10}" for number in numbers],
            "d": [number % 10 / 2 for number in numbers],
            "m": pa.array([Decimal(number % 10) for number in numbers], pa.decimal128(10, 2)),
            "ts": pa.array(
                [_EPOCH + datetime.timedelta(seconds=number / 10) for number in numbers], pa.timestamp("us", tz="UTC")
            ),
        }
    )


def practise_classes(spark: SparkSession, folder: Path) -> None:
    """A session as users run one: its start, its batches, its answers and its end."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
    left = rows.selectExpr("value AS id", "value % 7 AS shop", "timestamp AS ts")
    right = rows.selectExpr("value AS id", "value % 90 AS amount", "timestamp AS ts")
    with Session(spark, folder) as session:
        session.create_stream("a", left, event_time="ts", lateness="2 seconds")
        session.create_stream("b", right, event_time="ts", lateness="2 seconds")
        pairs = session.create_query("SELECT a.shop, b.amount FROM a JOIN b ON a.id = b.id WITHIN 9 SECONDS", "pairs")
        session.start(trigger="1 second")
        pairs.await_results(500, timeout=WRITING_PATIENCE_S)
        pairs.results().orderBy("amount").limit(5).collect()
        session.explain()


def main(what: str, options: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="dovetail-warm-up-") as folder:
        if what == "kernels":
            practise_kernels(Path(folder))
            return
        spark = local_spark("dovetail-warm-up", spark__driver__extraJavaOptions=" ".join(options))
        practise_classes(spark, Path(folder))
        end_local_spark(spark, timeout_s=WRITING_PATIENCE_S)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
