"""Where a row comes from, for rows that may be bad: all others bring a NULL, which costs next to nothing.

A batch's task decides which rows are bad. Spark, which alone knows files and offsets, is asked a little more widely,
for its clock is not the engine's.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from dovetail.query.formats import FILE_FORMATS, KAFKA
from dovetail.query.row_rules import FIRST_TIME_US, LAST_TIME_US
from dovetail.query.stream_spec import StreamSpec
from dovetail.store.bad_rows import RECORD, SOURCE

KAFKA_PLACE = ("topic", "partition", "offset")
"""What a record of Kafka is found by: columns of Spark's reader, here with a # before their names."""
CSV = "csv"
TEXT_FORMATS = ("json", CSV)
_HOUR_US = 3_600_000_000
_WIDEST_ZONE_HOURS = 15


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
    return spec.kind in TEXT_FORMATS and spec.event_time is not None and not is_own_matter


def record_options(spec: StreamSpec) -> dict[str, str]:
    return {"columnNameOfCorruptRecord": RECORD} if keeps_records(spec) else {}


def with_record(spec: StreamSpec, schema: StructType) -> StructType:
    """What Spark's reader is asked for."""
    return schema.add(RECORD, StringType()) if keeps_records(spec) else schema


def place_columns(spec: StreamSpec) -> list[Column]:
    """What to select of a file source beside the declared columns."""
    source = row_source(spec)
    columns = [] if source is None else [F.expr(source).alias(SOURCE)]
    return [*columns, record(spec).alias(RECORD)] if keeps_records(spec) else columns


def decoded(spec: StreamSpec, frame: DataFrame, *others: str) -> DataFrame:
    """Rows of the past without those that could not be decoded: their batch had none of them. With `others`."""
    if not keeps_records(spec):
        return frame
    columns = [*(name for name, _ in spec.columns), *others]
    return frame.filter(record(spec).isNull()).select(*(F.col(_quoted(name)) for name in columns))


def record(spec: StreamSpec) -> Column:
    """The text where a value is missing because of it. A CSV line with more values than columns is as good as any."""
    if spec.kind != CSV:
        return F.col(_quoted(RECORD))
    missing = " OR ".join(f"{_quoted(name)} IS NULL" for name, _ in spec.columns)
    return F.expr(f"CASE WHEN {missing} THEN {_quoted(RECORD)} END")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _may_be_bad(spec: StreamSpec, time: str) -> str:
    stream = spec.stream
    margin_us = _HOUR_US if stream.has_time_zone else _WIDEST_ZONE_HOURS * _HOUR_US
    micros = f"unix_micros(CAST({_quoted(time)} AS TIMESTAMP))"
    last = f"{LAST_TIME_US - margin_us}L"
    if stream.rules.max_ahead_us is not None:
        ahead_us = min(stream.rules.max_ahead_us, LAST_TIME_US) - margin_us
        last = f"least({last}, unix_micros(current_timestamp()) + {ahead_us}L)"
    return f"{micros} > {last} OR {micros} < {FIRST_TIME_US + margin_us}L"
