from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from dovetail.core.errors import StreamError, UnsupportedSql
from dovetail.frontend.compile_sql import compile_sql
from dovetail.query.stream import Stream
from dovetail.query.stream_spec import StreamSpec, stream_spec
from dovetail.query.types import BIGINT, COLLATED, DOUBLE, INT, STRING, TIMESTAMP, SqlType
from dovetail.runtime.spark.sources.open_stream import check_source, kafka_columns, open_stream
from dovetail.runtime.spark.types import stream_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

COLUMNS = (("id", BIGINT), ("price", SqlType("decimal", 10, 2)), ("odd `name`", STRING), ("ts", TIMESTAMP))


def rows_of(frame: DataFrame, folder: Path) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    writer = frame.writeStream.foreachBatch(lambda batch, _: rows.extend(map(tuple, batch.collect())))
    writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(
        availableNow=True
    ).start().awaitTermination()
    return rows


def test_files_have_the_declared_columns(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    lines = ['{"id": 1, "price": 2.50, "odd `name`": "x", "ts": "2024-01-01T00:00:00Z", "more": 3}', '{"id": 2}']
    (source / "1.json").write_text("\n".join(lines))
    spec = stream_spec("views", COLUMNS, {"format": "json", "path": str(source)})
    check_source(spark, spec)
    frame = open_stream(spark, spec)
    assert stream_columns("views", frame.schema) == COLUMNS
    rows = rows_of(frame.select("id", F.col("price").cast("string"), "`odd ``name```"), tmp_path)
    assert sorted(rows) == [(1, "2.50", "x"), (2, None, None)]


def test_rate_gives_those_of_its_columns_that_are_declared(spark: SparkSession) -> None:
    spec = stream_spec("ticks", (("value", BIGINT),), {"format": "rate", "rowsPerSecond": 3})
    check_source(spark, spec)
    assert stream_columns("ticks", open_stream(spark, spec).schema) == (("value", BIGINT),)


def test_any_other_format_must_have_the_columns(spark: SparkSession) -> None:
    columns = (("timestamp", TIMESTAMP), ("value", BIGINT))
    spec = StreamSpec("ticks", columns, "rate-micro-batch", {"rowsPerBatch": "2"})
    assert stream_columns("ticks", open_stream(spark, spec).schema) == columns
    wrong = StreamSpec("ticks", (("value", INT), ("extra", DOUBLE)), "rate-micro-batch", {"rowsPerBatch": "2"})
    with pytest.raises(StreamError, match="not those of the source") as caught:
        open_stream(spark, wrong)
    assert "declared value int, extra double; the source has timestamp timestamp, value bigint" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"format": "parquet", "path": "/no/such/folder"}, "PATH_NOT_FOUND"),
        ({"format": "no.such.format"}, "DATA_SOURCE_NOT_FOUND"),
        ({"format": "parquet", "path": "HERE", "maxFilesPerTrigger": "many"}, "many"),
    ],
)
def test_what_spark_cannot_read_is_said_at_once(
    spark: SparkSession, tmp_path: Path, given: dict[str, str], said: str
) -> None:
    given = {key: value.replace("HERE", str(tmp_path)) for key, value in given.items()}
    with pytest.raises(StreamError, match="Spark cannot read it") as caught:
        check_source(spark, stream_spec("views", COLUMNS, given))
    assert said in str(caught.value)
    assert str(caught.value).count("\n") == 2


def test_without_its_connector_kafka_is_refused_with_the_package_to_add(spark: SparkSession) -> None:
    given = {"format": "kafka", "kafka.bootstrap.servers": "localhost:1", "subscribe": "views"}
    with pytest.raises(StreamError) as caught:
        check_source(spark, stream_spec("views", COLUMNS, given))
    assert f"spark-sql-kafka-0-10_2.13:{spark.version}" in str(caught.value)


def test_kafka_values_are_json_and_what_is_not_gives_nulls(spark: SparkSession, tmp_path: Path) -> None:
    """On files that look like what the connector reads; a real broker is another test's matter."""
    values = [json.dumps({"id": 1, "odd `name`": "x", "ts": "2024-01-01T00:00:00Z"}), "no json", "[1]"]
    moment = pa.array([5_000_000] * 3).cast(pa.timestamp("us", tz="UTC"))
    records = pa.table(
        {
            "key": pa.array([b"a", None, b"c"], pa.binary()),
            "value": pa.array([value.encode() for value in values], pa.binary()),
            "partition": pa.array([0, 0, 1], pa.int32()),
            "offset": pa.array([7, 8, 0], pa.int64()),
            "timestamp": moment,
        }
    )
    (tmp_path / "source").mkdir()
    pq.write_table(records, tmp_path / "source" / "1.parquet")
    frame = spark.readStream.schema(spark.read.parquet(str(tmp_path / "source")).schema).parquet(
        str(tmp_path / "source")
    )
    columns = (*COLUMNS, ("kafka_key", STRING), ("kafka_partition", INT), ("kafka_offset", BIGINT))
    columns = (*columns, ("kafka_timestamp", TIMESTAMP))
    given = {"format": "kafka", "kafka.bootstrap.servers": "localhost:1", "subscribe": "views"}
    read = kafka_columns(stream_spec("views", columns, given), frame)
    assert stream_columns("views", read.schema) == columns
    rows = rows_of(read.select("id", "`odd ``name```", "kafka_key", "kafka_offset"), tmp_path)
    assert sorted(rows, key=str) == sorted([(1, "x", "a", 7), (None, None, None, 8), (None, None, "c", 0)], key=str)


def test_text_that_spark_does_not_compare_by_bytes_is_a_column_that_no_query_can_use(spark: SparkSession) -> None:
    schema = StructType(
        [
            StructField("k", LongType()),
            StructField("plain", StringType()),
            StructField("folded", StringType("UTF8_LCASE")),
            StructField("trimmed", StringType("UTF8_BINARY_RTRIM")),
            StructField("padded", StringType(), metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}),
            StructField("short", StringType(), metadata={"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}),
        ]
    )
    frame = spark.createDataFrame([], schema)
    columns = stream_columns("a", frame.schema)
    kinds = {name: kind for name, kind in columns if kind != BIGINT}
    assert kinds == dict.fromkeys(("plain", "short"), STRING) | dict.fromkeys(("folded", "trimmed", "padded"), COLLATED)
    streams = {"a": Stream("a", columns)}
    compile_sql("SELECT k, plain FROM (SELECT * FROM a) a WHERE short = plain", streams)
    for text in (
        "SELECT folded FROM a",
        "SELECT * FROM a",
        "SELECT k FROM a WHERE trimmed = 'x'",
        "SELECT upper(padded) AS u FROM a",
        "SELECT DISTINCT a.folded FROM a",
        "SELECT x.k FROM a x JOIN a y USING (folded)",
        "SELECT k, COUNT(DISTINCT q) AS n FROM (SELECT k, folded AS q FROM a) a GROUP BY k",
    ):
        with pytest.raises(UnsupportedSql) as caught:
            compile_sql(text, streams)
        assert "cast('string')" in (caught.value.hint or "")
    cast = frame.select("k", *(F.col(name).cast("string").alias(name) for name in ("folded", "trimmed", "padded")))
    assert {kind for _, kind in stream_columns("a", cast.schema)} == {BIGINT, STRING}


def test_values_of_kafka_that_do_not_decode_are_kept_apart_and_no_rows_of_the_past(
    spark: SparkSession, tmp_path: Path
) -> None:
    values = [
        '{"k": 1, "ts": "2024-01-01T00:00:00Z"}',
        "{no json",
        '{"k": "x", "ts": "2024-01-01T00:00:00Z"}',
        "",
        None,
    ]
    rows = [(value, "t", 0, offset) for offset, value in enumerate(values)]
    (tmp_path / "source").mkdir()
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    table = pa.table(columns, ["value", "topic", "partition", "offset"])
    pq.write_table(table, tmp_path / "source" / "1.parquet")
    schema = spark.read.parquet(str(tmp_path / "source")).schema
    frame = spark.readStream.schema(schema).parquet(str(tmp_path / "source"))
    given = {"format": "kafka", "kafka.bootstrap.servers": "localhost:1", "subscribe": "t", "event_time": "ts"}
    spec = stream_spec("views", (("k", INT), ("ts", TIMESTAMP)), given)
    live = kafka_columns(spec, frame, has_source=True).select("k", "`#source`", "`#record`")
    places = [None, *(f"topic t, partition 0, offset {offset}" for offset in (1, 2, 3)), None]
    records = [None, values[1], values[2], "", None]
    keys = [1, None, None, None, None]
    assert sorted(rows_of(live, tmp_path / "live"), key=str) == sorted(zip(keys, places, records, strict=True), key=str)
    past = rows_of(kafka_columns(spec, frame).select("k"), tmp_path / "past")
    assert sorted(past, key=str) == sorted([(1,), (None,)], key=str)
