"""From the declaration of a stream to Spark's streaming DataFrame, and to one of some of its files.

Names and options of users reach Spark as values only: no text of theirs is parsed as SQL.

Rows that may be bad bring along where they come from: all others have a NULL there, which costs next to nothing. A
batch's task decides which rows are bad. Spark, which alone knows files and offsets, is asked a little more widely, for
its clock is not the engine's.
"""

from __future__ import annotations

import re
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StringType, StructField, StructType

from dovetail.core.errors import StreamError
from dovetail.core.secret_reference import resolved
from dovetail.query.formats import FILE_FORMATS, KAFKA
from dovetail.query.row_rules import FIRST_TIME_US, LAST_TIME_US
from dovetail.query.stream_spec import KAFKA_META_COLUMNS, Columns, StreamSpec
from dovetail.runtime.spark.types import is_collated, quoted, spark_type
from dovetail.store.bad_rows import RECORD, SOURCE

ANSWER_TIMEOUT_S = 60.0
_NAMED_SOURCES_KEY = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
_CONNECTORS = {
    KAFKA: "org.apache.spark:spark-sql-kafka-0-10_2.13",
    "avro": "org.apache.spark:spark-avro_2.13",
}
_switching = threading.RLock()
_KAFKA_SOURCES = {name: name.removeprefix("kafka_") for name, _ in KAFKA_META_COLUMNS}
KAFKA_PLACE = ("topic", "partition", "offset")
"""What a record of Kafka is found by: columns of Spark's reader, here with a # before their names."""
CSV = "csv"
TEXT_FORMATS = ("json", CSV)
_RAISED = re.compile(r"[\w.]+(Error|Exception)\b")
_HOUR_US = 3_600_000_000
_WIDEST_ZONE_HOURS = 15


def open_stream(
    spark: SparkSession, spec: StreamSpec, *, is_named: bool = False, has_source: bool = False
) -> DataFrame:
    """The stream with exactly the declared columns; `is_named`: Spark's checkpoint knows it by its name.

    `has_source`: with `PLACE_COLUMNS`, too, where somebody knows them.
    """
    options = {**resolved(spec.options), **(record_options(spec) if has_source and spec.kind in TEXT_FORMATS else {})}
    reader = spark.readStream.format(spec.format).options(**options)
    if is_named:
        reader = reader.name(spec.name)
    try:
        return _columns_of(spec, reader, has_source=has_source)
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


def _columns_of(spec: StreamSpec, reader: DataStreamReader, *, has_source: bool) -> DataFrame:
    if spec.kind in FILE_FORMATS:
        schema = schema_of(spec.columns)
        if not has_source:
            return reader.schema(schema).load()
        return with_places(spec, reader.schema(with_record(spec, schema)).load())
    if spec.kind == KAFKA:
        return kafka_columns(spec, reader.load(), has_source=has_source)
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


def with_places(spec: StreamSpec, frame: DataFrame) -> DataFrame:
    """The declared columns and those that say where a bad row comes from."""
    return frame.select(*(F.col(quoted(name)) for name, _ in spec.columns), *place_columns(spec))


def kafka_columns(spec: StreamSpec, frame: DataFrame, *, has_source: bool = False) -> DataFrame:
    """The fields of the value, and what the record says around it.

    `has_source`: the text of a value that does not decode is in `RECORD`; else such records are left out.
    """
    fields = kafka_fields(spec)
    text = F.col("value").cast("string")
    value = F.from_json(text, with_record(spec, schema_of(fields)), record_options(spec)) if fields else None

    def column(name: str) -> Column:
        if name in _KAFKA_SOURCES:
            source = F.col(_KAFKA_SOURCES[name])
            return source.cast("string") if name == "kafka_key" else source
        assert value is not None
        return value.getField(name)

    columns = [column(name).alias(name) for name, _ in spec.columns]
    if keeps_records(spec):
        assert value is not None
        # An empty text is no object either, and Spark has no word for it.
        columns.append(F.coalesce(value.getField(RECORD), F.when(value.isNull(), text)).alias(RECORD))
    if not has_source:
        return decoded(spec, frame.select(*columns))
    placed = frame.select(*columns, *(F.col(name).alias(f"#{name}") for name in KAFKA_PLACE))
    return placed.select(*(F.col(quoted(name)) for name, _ in spec.columns), *place_columns(spec))


def kafka_fields(spec: StreamSpec) -> Columns:
    """The columns that a value must have; the others say where the record was."""
    return tuple(column for column in spec.columns if column[0] not in _KAFKA_SOURCES)


def schema_of(columns: Columns) -> StructType:
    return StructType([StructField(name, spark_type(sql_type)) for name, sql_type in columns])


def _cannot_read(spark: SparkSession, spec: StreamSpec, error: Exception) -> StreamError:
    message = str(error.java_exception.getMessage()) if isinstance(error, Py4JJavaError) else str(error)
    hint = "see that the source is there and that the options are those of its format"
    if "Failed to find" in message and spec.kind in _CONNECTORS:
        hint = f"start Spark with spark.jars.packages = {_CONNECTORS[spec.kind]}:{spark.version}"
    said = message.strip().splitlines()
    # Of a source in Python the first line says only that there is a traceback.
    raised = [line.strip() for line in said if _RAISED.match(line.strip())]
    where = raised[-1] if raised and "Traceback" in said[0] else said[0] if said else None
    return StreamError(f"stream {spec.name!r}: Spark cannot read it", where=where, hint=hint)


def row_source(spec: StreamSpec) -> str | None:
    """An expression over the declared columns, what Spark knows of files, and `KAFKA_PLACE`; None: nobody knows it."""
    time = spec.event_time
    if time is None or any(name.lower() == "_metadata" for name, _ in spec.columns):
        return None
    if spec.kind in FILE_FORMATS:
        place = "_metadata.file_path"
    elif spec.kind == KAFKA:
        place = "concat('topic ', `#topic`, ', partition ', `#partition`, ', offset ', `#offset`)"
    else:
        return None
    undecoded = f"`{RECORD}` IS NOT NULL OR " if keeps_records(spec) else ""
    return f"CASE WHEN {undecoded}{_may_be_bad(spec, time)} THEN {place} END"


def keeps_records(spec: StreamSpec) -> bool:
    """Whether Spark tells which records it could not decode; if not, they have NULLs where that failed."""
    is_own_matter = any(spec.option(key) is not None for key in ("mode", "columnNameOfCorruptRecord"))
    is_text = spec.kind in TEXT_FORMATS or (spec.kind == KAFKA and bool(kafka_fields(spec)))
    return is_text and spec.event_time is not None and not is_own_matter


def record_options(spec: StreamSpec) -> dict[str, str]:
    return {"columnNameOfCorruptRecord": RECORD} if keeps_records(spec) else {}


def with_record(spec: StreamSpec, schema: StructType) -> StructType:
    """What Spark's reader is asked for."""
    return schema.add(RECORD, StringType()) if keeps_records(spec) else schema


def place_columns(spec: StreamSpec) -> list[Column]:
    """What to select beside the declared columns."""
    source = row_source(spec)
    columns = [] if source is None else [F.expr(source).alias(SOURCE)]
    return [*columns, record(spec).alias(RECORD)] if keeps_records(spec) else columns


def decoded(spec: StreamSpec, frame: DataFrame, *others: str) -> DataFrame:
    """Rows of the past without those that could not be decoded: their batch had none of them. With `others`."""
    if not keeps_records(spec):
        return frame
    columns = [*(name for name, _ in spec.columns), *others]
    return frame.filter(record(spec).isNull()).select(*(F.col(quoted(name)) for name in columns))


def record(spec: StreamSpec) -> Column:
    """The text where a value is missing because of it. A CSV line with more values than columns is as good as any."""
    if spec.kind != CSV:
        return F.col(quoted(RECORD))
    missing = " OR ".join(f"{quoted(name)} IS NULL" for name, _ in spec.columns)
    return F.expr(f"CASE WHEN {missing} THEN {quoted(RECORD)} END")


def _may_be_bad(spec: StreamSpec, time: str) -> str:
    stream = spec.stream
    margin_us = _HOUR_US if stream.has_time_zone else _WIDEST_ZONE_HOURS * _HOUR_US
    micros = f"unix_micros(CAST({quoted(time)} AS TIMESTAMP))"
    last = f"{LAST_TIME_US - margin_us}L"
    if stream.rules.max_ahead_us is not None:
        ahead_us = min(stream.rules.max_ahead_us, LAST_TIME_US) - margin_us
        last = f"least({last}, unix_micros(current_timestamp()) + {ahead_us}L)"
    return f"{micros} > {last} OR {micros} < {FIRST_TIME_US + margin_us}L"


def read_files(spark: SparkSession, spec: StreamSpec, paths: Sequence[str]) -> DataFrame:
    """`paths` as Spark's log of the source writes them; with `RECORD`, where that is kept.

    Spark passes over files that are not there.
    """
    options: dict[str, Any] = {key.lower(): value for key, value in resolved(spec.options).items()}
    folder = options.pop("path")
    # As Spark's own file source does: names are names, not patterns; and folders named k=v are columns.
    options["__globPaths__"] = "false"
    if "basepath" not in options and not is_pattern(folder):
        options["basepath"] = folder
    schema = with_record(spec, schema_of(spec.columns))
    reader = spark.read.format(spec.format).options(**options, **record_options(spec)).schema(schema)
    return reader.load([unquote(path) for path in paths])


def files_that_are_gone(frame: DataFrame, paths: Iterable[str]) -> list[str]:
    """Names that are no patterns are taken without a look."""
    found = set(map(one_slash, frame.inputFiles()))
    return sorted(path for path in paths if one_slash(path) not in found)


def is_pattern(path: str) -> bool:
    return any(sign in path for sign in "*?[{")


def one_slash(path: str) -> str:
    """Spark writes a local file now with one slash, now with three."""
    return path.replace("file:///", "file:/", 1)
