"""Where a row comes from, for rows that may be bad: all others bring a NULL, which costs next to nothing.

A batch's task decides which rows are bad. Spark, which alone knows files and offsets, is asked a little more widely,
for its clock is not the engine's.
"""

from __future__ import annotations

from dovetail.query.row_rules import FIRST_TIME_US, LAST_TIME_US
from dovetail.query.stream_spec import FILE_FORMATS, KAFKA, StreamSpec

KAFKA_PLACE = ("topic", "partition", "offset")
"""What a record of Kafka is found by: columns of Spark's reader, here with a # before their names."""
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
    return f"CASE WHEN {_may_be_bad(spec, time)} THEN {place} END"


def _may_be_bad(spec: StreamSpec, time: str) -> str:
    stream = spec.stream
    margin_us = _HOUR_US if stream.has_time_zone else _WIDEST_ZONE_HOURS * _HOUR_US
    micros = f"unix_micros(CAST(`{time.replace('`', '``')}` AS TIMESTAMP))"
    last = f"{LAST_TIME_US - margin_us}L"
    if stream.rules.max_ahead_us is not None:
        ahead_us = min(stream.rules.max_ahead_us, LAST_TIME_US) - margin_us
        last = f"least({last}, unix_micros(current_timestamp()) + {ahead_us}L)"
    return f"{micros} > {last} OR {micros} < {FIRST_TIME_US + margin_us}L"
