"""The demo's queries on Dovetail, as Spark's own stream-stream joins, and as batch SQL: one answer."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dovetail import Session
from dovetail.demo.queries import QUERIES
from dovetail.demo.streams import STREAMS
from dovetail.engine.options import EngineTuning

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

FILES = 4
ROWS_PER_FILE = 2000
# As in the queries, but each join hands on one event time only: Spark refuses two in the next one's input.
SPARK_SQL_BY_NAME = {
    "Q1": QUERIES[0].sql,
    "Q2": """
        SELECT VW.usr_id, VW.vid, VW.duration, C.comment, C.ts
        FROM (SELECT W.usr_id, V.vid, W.duration, W.ts FROM videos V
              JOIN views W ON W.vid = V.vid AND W.ts BETWEEN V.ts AND V.ts + INTERVAL 4 SECONDS
              WHERE V.geo = 'US' AND W.duration < 10) VW
        JOIN comments C ON VW.usr_id = C.usr_id AND C.ts BETWEEN VW.ts AND VW.ts + INTERVAL 4 SECONDS
        WHERE C.length > 5
    """,
    "Q3": """
        SELECT WC.usr_id, WC.vid, WC.comment, R.reaction, R.ts
        FROM (SELECT W.usr_id, W.vid, C.comment, W.ts FROM views W
              JOIN comments C ON W.usr_id = C.usr_id AND C.ts BETWEEN W.ts AND W.ts + INTERVAL 4 SECONDS
              WHERE W.geo = 'EU' AND C.emojis > 0) WC
        JOIN reactions R ON WC.usr_id = R.usr_id AND R.ts BETWEEN WC.ts AND WC.ts + INTERVAL 4 SECONDS
        WHERE R.reaction = 'angry'
    """,
}


@pytest.fixture(scope="module")
def files(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's rows with event times of one second per file, fewer users and videos so that many join."""
    folder = tmp_path_factory.mktemp("demo-streams")
    for stream in STREAMS:
        for number in range(FILES):
            texts = [f"{text} AS {column}" for column, text in stream.text_by_column.items()]
            rows = spark.range(number * ROWS_PER_FILE, (number + 1) * ROWS_PER_FILE, numPartitions=1)
            rows = rows.withColumnRenamed("id", "value").selectExpr(
                *(t.replace("20000)", "400)").replace("10000)", "400)") for t in texts),
                f"timestamp_micros(1700000000000000 + value * {1_000_000 // ROWS_PER_FILE}) AS ts",
            )
            table = rows.toArrow()
            target = folder / stream.name / f"{number}.parquet"
            target.parent.mkdir(exist_ok=True)
            spark.createDataFrame(table).coalesce(1).write.parquet(str(target) + ".dir")
            (part,) = (target.parent / f"{number}.parquet.dir").glob("*.parquet")
            part.rename(target)
            os.utime(target, (1_700_000_000 + number,) * 2)
    return folder


def stream_of(spark: SparkSession, files: Path, name: str) -> DataFrame:
    schema = spark.read.parquet(str(files / name / "0.parquet")).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).option("pathGlobFilter", "*.parquet")
    return reader.parquet(str(files / name))


def rows_of(frame: DataFrame) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row) for row in frame.collect())


def run_spark(spark: SparkSession, files: Path, folder: Path) -> dict[str, Counter[tuple[object, ...]]]:
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "2")
    for stream in STREAMS:
        frame = stream_of(session, files, stream.name)
        frame.withWatermark("ts", "1 second").createOrReplaceTempView(stream.name)
    answers = {}
    for name, sql in SPARK_SQL_BY_NAME.items():
        output = str(folder / name)
        writer = session.sql(sql).writeStream.format("parquet").option("path", output)
        query = writer.option("checkpointLocation", f"{output}-checkpoint").trigger(availableNow=True).start()
        assert query.awaitTermination(300)
        answers[name] = rows_of(session.read.parquet(output))
    return answers


@pytest.mark.slow
def test_spark_streaming_dovetail_and_batch_sql_agree(spark: SparkSession, files: Path, tmp_path: Path) -> None:
    session = Session(spark, tmp_path / "checkpoint", tuning=EngineTuning(small_batch_rows=0))
    for stream in STREAMS:
        session.create_stream(stream.name, stream_of(spark, files, stream.name), event_time="ts", lateness="1 second")
    queries = {query.name: session.create_query(query.sql, name=query.name) for query in QUERIES}
    session.start(trigger="available_now")
    session.await_termination()
    ours = {name: rows_of(query.results()) for name, query in queries.items()}
    session.stop()
    by_spark = run_spark(spark, files, tmp_path / "spark")
    for stream in STREAMS:
        paths = [str(files / stream.name / f"{number}.parquet") for number in range(FILES)]
        spark.read.parquet(*paths).createOrReplaceTempView(stream.name)
    for query in QUERIES:
        batch = rows_of(spark.sql(query.sql))
        assert sum(batch.values()) > 50, query.name
        assert ours[query.name] == batch, query.name
        assert by_spark[query.name] == batch, query.name
