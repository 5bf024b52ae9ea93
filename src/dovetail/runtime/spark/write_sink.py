"""Writes the committed answers of one batch with one of Spark's batch writers.

Kafka gets each row as JSON, with headers that say which row it is; every other format gets the rows as they are, and
the same three facts as columns if the sink asks for them. A batch that is written again brings the same of these.
"""

from __future__ import annotations

from collections.abc import Mapping

from py4j.protocol import Py4JJavaError
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from dovetail.core.errors import QueryError, SinkError
from dovetail.core.secret_reference import resolved
from dovetail.runtime.result_batch import ResultBatch
from dovetail.runtime.spark.part_rows import SEQUENCE, part_rows, results_schema
from dovetail.runtime.spark.types import quoted
from dovetail.store.result_parts import check_results

KAFKA = "kafka"
HEADERS = ("dovetail-query", "dovetail-batch", "dovetail-sequence")
IDENTITY = ("dovetail_query", "dovetail_batch", "dovetail_sequence")
# The same text whatever the session's settings, with all that a row has: null fields, microseconds.
_JSON = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def write_sink(spark: SparkSession, sink_format: str, options: Mapping[str, str], batch: ResultBatch) -> None:
    """Options are Spark's own, but for `mode`, `partitionBy`, `identify` and Kafka's `key`.

    In every value {query} and {batch} stand for the query's id and the batch's number, so that a sink can keep
    batches apart: a path with {batch} and mode «overwrite» makes a repeated batch replace itself.
    """
    for_writer = {
        name: value.replace("{query}", batch.query).replace("{batch}", str(batch.batch))
        for name, value in resolved(options).items()
    }
    mode = for_writer.pop("mode", "append")
    partition_by = [name.strip() for name in for_writer.pop("partitionBy", "").split(",") if name.strip()]
    is_identified = for_writer.pop("identify", "false").lower() == "true"
    check_results(batch.root, batch.parts)
    rows = part_rows(spark, batch.root, batch.output, batch.parts)
    facts = (F.lit(batch.query), F.lit(batch.batch).cast("bigint"), F.col(quoted(SEQUENCE)))
    names = [field.name for field in results_schema(batch.output)]
    if sink_format == KAFKA:
        frame = rows.select(*_kafka_columns(names, for_writer.pop("key", ""), facts))
    else:
        identity = [fact.alias(name) for name, fact in zip(IDENTITY, facts, strict=True)] if is_identified else []
        frame = rows.select(*(F.col(quoted(name)) for name in names), *identity)
    writer = frame.write.format(sink_format).options(**for_writer).mode(mode)
    try:
        (writer.partitionBy(*partition_by) if partition_by else writer).save()
    except Py4JJavaError as error:
        raise SinkError(_cause(error)) from error


def _kafka_columns(names: list[str], key: str, facts: tuple[Column, ...]) -> list[Column]:
    row = F.struct(*(F.col(quoted(name)) for name in names))
    headers = F.array(
        *(
            F.struct(F.lit(name).alias("key"), fact.cast("string").cast("binary").alias("value"))
            for name, fact in zip(HEADERS, facts, strict=True)
        )
    )
    columns = [F.to_json(row, _JSON).alias("value"), headers.alias("headers")]
    if not key:
        return columns
    if key not in names:
        raise QueryError(f"sink.key is {key!r}, which the query does not answer", hint=f"use one of {', '.join(names)}")
    return [F.col(quoted(key)).cast("string").alias("key"), *columns]


def _cause(error: Py4JJavaError) -> str:
    """What went wrong in the first place; the error itself only says which call it was."""
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.toString())
