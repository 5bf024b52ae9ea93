"""A stream that Dovetail opens itself: where its rows come from, and what they look like."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from dovetail.core.errors import StreamError
from dovetail.core.plain_text import is_whole_text
from dovetail.query.formats import FILE_FORMATS, KAFKA, RATE
from dovetail.query.hide_secrets import hide_secrets
from dovetail.query.row_rules import OFF, ONE_DAY, QUARANTINE, lateness_us, row_rules
from dovetail.query.stream import Stream
from dovetail.query.types import BIGINT, COLUMN_TYPES, INT, STRING, TIMESTAMP, SqlType, parse_column_type

Columns = tuple[tuple[str, SqlType], ...]

RATE_COLUMNS: Columns = (("timestamp", TIMESTAMP), ("value", BIGINT))
TEXT_COLUMNS: Columns = (("value", STRING),)
KAFKA_META_COLUMNS: Columns = (
    ("kafka_key", STRING),
    ("kafka_timestamp", TIMESTAMP),
    ("kafka_partition", INT),
    ("kafka_offset", BIGINT),
)
"""Columns of a Kafka stream that come from the record around the value."""
CONTROL = "dovetail_control"
"""What Spark knows our own source by; no stream can have this name."""
NO_LATENESS = "0 seconds"
OWN_KEYS = ("format", "event_time", "lateness", "on_bad_row", "max_event_time_ahead")
VALUE_FORMAT = "value_format"

# Spark names sources in its checkpoint by the same word, and takes no other letters.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")
_FORMAT = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,199}\Z")
_TOPIC_KEYS = ("subscribe", "subscribepattern", "assign")


@dataclass(frozen=True, repr=False)
class StreamSpec:
    """A Spark source by the name of its format, with the options that Spark's reader takes, and the columns to read.

    `columns` are pairs of a name and a type of `dovetail.query.types`. `event_time` is the column of time conditions
    and windows, `lateness` a duration as SQL writes it, such as «2 seconds». `on_bad_row` is what becomes of rows that
    cannot be used («quarantine», «drop» or «fail»); rows further ahead of their batch than `max_event_time_ahead` are
    such, too («off»: none are).
    """

    name: str
    columns: Columns
    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    event_time: str | None = None
    lateness: str = NO_LATENESS
    on_bad_row: str = QUARANTINE
    max_event_time_ahead: str = ONE_DAY

    def __post_init__(self) -> None:
        if not _NAME.match(str(self.name)) or self.name.lower() == CONTROL:
            raise StreamError(
                f"{self.name!r} cannot name a stream",
                hint="use letters from a to z, digits and underscores, beginning with a letter, at most 100",
            )
        if not _FORMAT.match(str(self.format)):
            raise self._error(
                f"{self.format!r} cannot name a format", "use one of Spark's, e.g. 'parquet', 'kafka' or 'rate'"
            )
        self._check_options()
        self._check_columns()
        if self.kind == KAFKA:
            self._check_kafka()
        elif self.kind in FILE_FORMATS and not self.option("path"):
            raise self._error("no path", "say which folder the files come into: path = '/data/views'")
        _ = self.stream  # it checks the event time and the names of columns

    @property
    def kind(self) -> str:
        """The format in small letters: Spark takes it in any case."""
        return self.format.lower()

    @cached_property
    def stream(self) -> Stream:
        """As queries see it."""
        rules = row_rules(self.name, self.on_bad_row, self.max_event_time_ahead)
        return Stream(self.name, self.columns, self.event_time, lateness_us(self.name, self.lateness), rules)

    def with_rules_of(self, other: StreamSpec) -> StreamSpec:
        """The same stream with the other's rules for bad rows: these may change at any time."""
        return replace(self, on_bad_row=other.on_bad_row, max_event_time_ahead=other.max_event_time_ahead)

    def option(self, key: str) -> str | None:
        """Spark takes the keys of its options in any case."""
        return next((value for known, value in self.options.items() if known.lower() == key.lower()), None)

    @property
    def shown_options(self) -> dict[str, str]:
        """The options without secrets, for people and logs."""
        return hide_secrets(self.format, self.options)

    def __repr__(self) -> str:
        shown = {**vars(self), "options": self.shown_options}
        return f"StreamSpec({', '.join(f'{entry.name}={shown[entry.name]!r}' for entry in fields(self))})"

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"columns": [[name, str(sql_type)] for name, sql_type in self.columns]}

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> StreamSpec:
        columns = tuple((name, parse_column_type(text)) for name, text in record["columns"])
        return StreamSpec(**{**record, "columns": columns})

    def _check_options(self) -> None:
        if not all(isinstance(part, str) for item in self.options.items() for part in item):
            raise self._error("the options are not all texts", "write values as texts: 'maxFilesPerTrigger' = '1'")
        for key, value in self.options.items():
            if not is_whole_text(key) or not is_whole_text(value):
                hint = "write whole characters, without half ones (\\ud800) and \\0"
                raise self._error(f"option {key!a} is {value!a}, which no file or system can take", hint)
        keys = [key.lower() for key in self.options]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        if twice:
            raise self._error(f"option {twice[0]!r} is given twice", "keys count as equal in any case: keep one")
        for key in OWN_KEYS:
            if key in keys:
                raise self._error(f"{key!r} is no option of a Spark source", f"leave {key} out of the options")

    def _check_columns(self) -> None:
        for name, sql_type in self.columns:
            if sql_type not in COLUMN_TYPES and sql_type.name != "decimal":
                known = ", ".join(map(str, COLUMN_TYPES))
                raise self._error(f"column {name!r} is {sql_type}", f"use one of {known}, decimal(p,s)")
        if not self.columns:
            raise self._error("no columns", "declare them with their types, e.g. (id BIGINT, ts TIMESTAMP)")
        fixed = {RATE: RATE_COLUMNS, "text": TEXT_COLUMNS}.get(self.kind)
        if fixed is not None and not set(self.columns) <= set(fixed):
            raise self._error(f"{_listed(self.columns)} are not the columns of format {self.format}", _listed(fixed))

    def _check_kafka(self) -> None:
        if not self.option("kafka.bootstrap.servers"):
            raise self._error("no broker", "add 'kafka.bootstrap.servers' = 'host:9092'")
        if sum(self.option(key) is not None for key in _TOPIC_KEYS) != 1:
            raise self._error("no topic, or several ways to name it", "add one of subscribe, subscribePattern, assign")
        types = dict(KAFKA_META_COLUMNS)
        for name, sql_type in self.columns:
            if types.get(name, sql_type) != sql_type:
                raise self._error(f"column {name!r} is {sql_type}", f"Kafka has it as {types[name]}: declare it so")

    def _error(self, what: str, hint: str) -> StreamError:
        return StreamError(f"stream {self.name!r}: {what}", hint=hint)


def stream_spec(name: str, columns: Columns, given: Mapping[str, Any]) -> StreamSpec:
    """A stream by keys as statements and files write them: a few are ours, the others go to Spark's reader.

    >>> stream_spec("ticks", (), {"format": "rate", "event_time": "timestamp", "rowsPerSecond": 5}).options
    {'rowsPerSecond': '5'}
    """
    ours = {key.lower(): value for key, value in given.items() if key.lower() in (*OWN_KEYS, VALUE_FORMAT)}
    others = {key: _text(value) for key, value in given.items() if key.lower() not in ours}
    if len(ours) + len(others) < len(given):
        raise StreamError(
            f"stream {name!r}: an option is given twice", hint="keys count as equal in any case: keep one"
        )
    if "format" not in ours:
        raise StreamError(
            f"stream {name!r}: no format",
            hint=f"add format = '...': {', '.join(FILE_FORMATS)}, {KAFKA}, {RATE} or any other that Spark reads",
        )
    kind = _text(ours["format"])
    value_format = ours.pop(VALUE_FORMAT, "json")
    if value_format != "json" or (VALUE_FORMAT in map(str.lower, given) and kind.lower() != KAFKA):
        raise StreamError(
            f"stream {name!r}: {VALUE_FORMAT} is {value_format!r}, and the format is {kind!r}",
            hint=f"{VALUE_FORMAT} = 'json' is for format = '{KAFKA}', and there is no other yet",
        )
    event_time = ours.get("event_time")
    return StreamSpec(
        name=name,
        columns=columns or (RATE_COLUMNS if kind.lower() == RATE else ()),
        format=kind,
        options=others,
        event_time=None if event_time is None else _text(event_time),
        lateness=_text(ours.get("lateness", NO_LATENESS)),
        on_bad_row=_text(ours.get("on_bad_row", QUARANTINE)),
        max_event_time_ahead=_ahead(ours.get("max_event_time_ahead", ONE_DAY)),
    )


def _ahead(value: Any) -> str:
    """YAML takes a bare `off` for a boolean."""
    return OFF if value is False else _text(value)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _listed(columns: Columns) -> str:
    return ", ".join(f"{name} {sql_type}" for name, sql_type in columns)
