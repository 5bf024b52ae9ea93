"""From the declaration of a stream to Spark's streaming DataFrame.

Names and options of users reach Spark as values only: no text of theirs is parsed as SQL.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StructField, StructType

from dovetail.core.errors import StreamError
from dovetail.core.secret_reference import resolved
from dovetail.query.formats import FILE_FORMATS, KAFKA
from dovetail.query.stream_spec import KAFKA_META_COLUMNS, Columns, StreamSpec
from dovetail.runtime.spark.types import is_collated, quoted, spark_type

ANSWER_TIMEOUT_S = 60.0
_NAMED_SOURCES_KEY = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
_CONNECTORS = {
    KAFKA: "org.apache.spark:spark-sql-kafka-0-10_2.13",
    "avro": "org.apache.spark:spark-avro_2.13",
}
_switching = threading.RLock()
_KAFKA_SOURCES = {name: name.removeprefix("kafka_") for name, _ in KAFKA_META_COLUMNS}


def open_stream(spark: SparkSession, spec: StreamSpec, *, is_named: bool = False) -> DataFrame:
    """The stream with exactly the declared columns; `is_named`: Spark's checkpoint knows it by its name."""
    reader = spark.readStream.format(spec.format).options(**resolved(spec.options))
    if is_named:
        reader = reader.name(spec.name)
    try:
        return _columns_of(spec, reader)
    except (PySparkException, Py4JError) as error:
        raise _cannot_read(spark, spec, error) from None


@contextmanager
def named_sources(spark: SparkSession, *, is_on: bool) -> Iterator[None]:
    """While this is on, Spark wants a name for every source, and its checkpoint knows them by their names.

    So a streaming query that starts anew may have one more. Spark takes names only while it is on: streams are opened
    and their streaming query is started under it, one at a time.
    """
    with _switching:
        before = spark.conf.get(_NAMED_SOURCES_KEY, None)
        if is_on:
            spark.conf.set(_NAMED_SOURCES_KEY, "true")
        try:
            yield
        finally:
            if before is not None:
                spark.conf.set(_NAMED_SOURCES_KEY, before)
            elif is_on:
                spark.conf.unset(_NAMED_SOURCES_KEY)


def check_source(spark: SparkSession, spec: StreamSpec) -> None:
    """Raise unless Spark can open the stream and its source answers what there is to read.

    A source is only asked when a streaming query runs, and one that fails takes every other stream down with it. So
    one of its own asks it, and reads nothing.
    """
    answered = threading.Event()
    with tempfile.TemporaryDirectory(prefix="dovetail-source-") as folder:
        try:
            with named_sources(spark, is_on=False):
                writer = open_stream(spark, spec).writeStream.foreachBatch(lambda _rows, _batch: answered.set())
                query = writer.option("checkpointLocation", Path(folder).as_uri()).trigger(availableNow=True).start()
            is_over = _await_answer(query, answered)
            failure = query.exception()
            query.stop()
        except (PySparkException, Py4JError) as error:
            raise _cannot_read(spark, spec, error) from None
    if failure is not None and not answered.is_set():
        raise _cannot_read(spark, spec, failure) from None
    if not is_over:
        raise _cannot_read(spark, spec, TimeoutError(f"no answer within {ANSWER_TIMEOUT_S:.0f} seconds"))


def _await_answer(query: StreamingQuery, answered: threading.Event) -> bool:
    """Until there is something to read or nothing at all; False when the time is up first."""
    deadline = time.monotonic() + ANSWER_TIMEOUT_S
    while query.isActive and not answered.wait(0.02):
        if time.monotonic() > deadline:
            return False
    return True


def _columns_of(spec: StreamSpec, reader: DataStreamReader) -> DataFrame:
    if spec.kind in FILE_FORMATS:
        return reader.schema(schema_of(spec.columns)).load()
    if spec.kind == KAFKA:
        return kafka_columns(spec, reader.load())
    frame = reader.load()
    given = {field.name: field.dataType for field in frame.schema}
    collated = [field.name for field in frame.schema if is_collated(field)]
    if any(name in collated for name, _ in spec.columns):
        raise StreamError(
            f"stream {spec.name!r}: {', '.join(collated)} of the source is text with a collation or of type CHAR,"
            " which Spark does not compare byte by byte",
            hint="leave the column out, or read the source as a DataFrame and cast it: df.c.cast('string')",
        )
    if any(given.get(name) != spark_type(sql_type) for name, sql_type in spec.columns):
        raise StreamError(
            f"stream {spec.name!r}: the columns are not those of the source",
            where="declared "
            + ", ".join(f"{name} {sql_type}" for name, sql_type in spec.columns)
            + "; the source has "
            + ", ".join(f"{name} {data_type.simpleString()}" for name, data_type in given.items()),
            hint="declare columns by the names and types that the source has; some may be left out",
        )
    return frame.select(*(F.col(quoted(name)) for name, _ in spec.columns))


def kafka_columns(spec: StreamSpec, frame: DataFrame) -> DataFrame:
    """The fields of the value, and what the record says around it. A value that is no JSON object gives NULLs."""
    fields = tuple(column for column in spec.columns if column[0] not in _KAFKA_SOURCES)
    value = F.from_json(F.col("value").cast("string"), schema_of(fields)) if fields else None

    def column(name: str) -> Column:
        if name in _KAFKA_SOURCES:
            source = F.col(_KAFKA_SOURCES[name])
            return source.cast("string") if name == "kafka_key" else source
        assert value is not None
        return value.getField(name)

    return frame.select(*(column(name).alias(name) for name, _ in spec.columns))


def schema_of(columns: Columns) -> StructType:
    return StructType([StructField(name, spark_type(sql_type)) for name, sql_type in columns])


def _cannot_read(spark: SparkSession, spec: StreamSpec, error: Exception) -> StreamError:
    message = str(error.java_exception.getMessage()) if isinstance(error, Py4JJavaError) else str(error)
    hint = "see that the source is there and that the options are those of its format"
    if "Failed to find" in message and spec.kind in _CONNECTORS:
        hint = f"start Spark with spark.jars.packages = {_CONNECTORS[spec.kind]}:{spark.version}"
    said = message.strip().splitlines()
    return StreamError(f"stream {spec.name!r}: Spark cannot read it", where=said[0] if said else None, hint=hint)
