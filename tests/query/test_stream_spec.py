from __future__ import annotations

import json
from typing import Any

import pytest

from dovetail.core.errors import StreamError
from dovetail.query.stream import Stream
from dovetail.query.stream_spec import RATE_COLUMNS, StreamSpec, stream_spec
from dovetail.query.types import BIGINT, INT, INTERVAL, STRING, TIMESTAMP, SqlType, parse_column_type

COLUMNS = (("id", BIGINT), ("price", SqlType("decimal", 10, 2)), ("ts", TIMESTAMP))
FILES: dict[str, Any] = {"format": "parquet", "path": "/data/views"}
KAFKA: dict[str, Any] = {"format": "kafka", "kafka.bootstrap.servers": "localhost:9092", "subscribe": "views"}


def test_our_keys_are_taken_and_the_others_go_to_spark_as_texts() -> None:
    given = {**FILES, "event_time": "ts", "Lateness": "2 seconds", "maxFilesPerTrigger": 1, "recursiveFileLookup": True}
    spec = stream_spec("views", COLUMNS, given)
    assert spec == StreamSpec(
        "views",
        COLUMNS,
        "parquet",
        {"path": "/data/views", "maxFilesPerTrigger": "1", "recursiveFileLookup": "true"},
        "ts",
        "2 seconds",
    )
    assert spec.stream == Stream("views", COLUMNS, "ts", 2_000_000)


def test_it_survives_json() -> None:
    spec = stream_spec("views", COLUMNS, {**FILES, "event_time": "ts"})
    assert StreamSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


def test_rate_brings_its_own_columns() -> None:
    assert stream_spec("ticks", (), {"format": "rate"}).columns == RATE_COLUMNS
    assert stream_spec("ticks", (("value", BIGINT),), {"format": "Rate"}).columns == (("value", BIGINT),)


def test_kafka_takes_meta_columns_and_says_its_value_format() -> None:
    columns = (*COLUMNS, ("kafka_key", STRING), ("kafka_offset", BIGINT))
    spec = stream_spec("views", columns, {**KAFKA, "value_format": "json"})
    assert "value_format" not in spec.options
    assert spec == stream_spec("views", columns, KAFKA)


def test_what_is_not_known_to_be_harmless_is_not_shown() -> None:
    secret = {"kafka.sasl.jaas.config": "x", "kafka.ssl.key.password": "secret://env/KEY", "kafka.made.up": "hunter2"}
    spec = stream_spec("views", COLUMNS, {**KAFKA, **secret})
    assert spec.shown_options == {
        "kafka.bootstrap.servers": "localhost:9092",
        "subscribe": "views",
        "kafka.sasl.jaas.config": "***",
        "kafka.ssl.key.password": "secret://env/KEY",
        "kafka.made.up": "***",
    }
    assert "hunter2" not in repr(spec)


@pytest.mark.parametrize(
    ("name", "columns", "given", "what", "hint"),
    [
        ("my views", COLUMNS, FILES, "cannot name a stream", "letters"),
        ("übrig", COLUMNS, FILES, "cannot name a stream", "a to z"),
        ("v", COLUMNS, {"path": "x"}, "no format", "format = '...'"),
        ("v", COLUMNS, {"format": "a b"}, "cannot name a format", "'parquet'"),
        ("v", (), FILES, "no columns", "BIGINT"),
        ("v", COLUMNS, {"format": "csv"}, "no path", "path ="),
        ("v", (("x", INTERVAL),), FILES, "column 'x' is interval", "decimal"),
        ("v", (("id", INT), ("ID", INT)), FILES, "columns of one name", None),
        ("v", COLUMNS, {**FILES, "event_time": "when"}, "no column 'when'", "id, price, ts"),
        ("v", COLUMNS, {**FILES, "event_time": "id"}, "not a timestamp", None),
        ("v", COLUMNS, {**FILES, "lateness": "soon"}, "lateness: 'soon' is no duration", "10 SECONDS"),
        ("v", COLUMNS, {**FILES, "PATH": "y"}, "'path' is given twice", "any case"),
        ("v", COLUMNS, {**FILES, "FORMAT": "csv"}, "given twice", "any case"),
        ("v", COLUMNS, {"format": "rate"}, "not the columns of format rate", "timestamp timestamp, value bigint"),
        ("v", (("value", INT),), {"format": "rate"}, "not the columns of format rate", "value bigint"),
        ("v", COLUMNS, {"format": "text", "path": "x"}, "not the columns of format text", "value string"),
        ("v", COLUMNS, {"format": "kafka", "subscribe": "t"}, "no broker", "kafka.bootstrap.servers"),
        ("v", COLUMNS, {**KAFKA, "assign": "{}"}, "several ways", "subscribePattern"),
        ("v", (("kafka_offset", INT),), KAFKA, "'kafka_offset' is int", "bigint"),
        ("v", COLUMNS, {**KAFKA, "value_format": "avro"}, "value_format is 'avro'", "'json'"),
        ("v", COLUMNS, {**FILES, "value_format": "json"}, "the format is 'parquet'", "'kafka'"),
    ],
)
def test_wrong_input_is_refused_with_what_to_write(
    name: str, columns: Any, given: dict[str, Any], what: str, hint: str | None
) -> None:
    with pytest.raises(StreamError) as caught:
        stream_spec(name, columns, given)
    assert what in caught.value.what
    assert hint is None or hint in (caught.value.hint or "")


def test_options_of_a_spec_are_spark_options_only() -> None:
    with pytest.raises(StreamError, match="'event_time' is no option"):
        StreamSpec("v", COLUMNS, "parquet", {"path": "x", "event_time": "ts"})
    with pytest.raises(StreamError, match="not all texts"):
        StreamSpec("v", COLUMNS, "parquet", {"path": "x", "maxFilesPerTrigger": 1})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("text", "name"), [("INTEGER", "int"), ("numeric", "decimal(10,0)"), ("dec( 5 , 1)", "decimal(5,1)")]
)
def test_types_are_read_as_spark_writes_them(text: str, name: str) -> None:
    assert str(parse_column_type(text)) == name


@pytest.mark.parametrize("text", ["interval", "window", "array<int>", "decimal(39)", "decimal(2,3)", "varchar(5)", ""])
def test_types_that_no_column_has_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no type of a column|no such decimal"):
        parse_column_type(text)
