"""What the service says of queries and streams, as frozen records. Keys that a newer service adds are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from dovetail.client.errors import UnexpectedAnswer

Record = TypeVar("Record")


@dataclass(frozen=True)
class Column:
    name: str
    type: str


@dataclass(frozen=True)
class BackfillStatus:
    """How far the answers from before a query are (docs/backfill.md)."""

    state: str
    batches_done: int
    batches_total: int
    rows: int
    error: str | None


@dataclass(frozen=True)
class QueryStatus:
    """As `docs/rest.md` has it: what a session says of a query, and what only a service knows of it.

    `in_effect`: no change of the query waits for a batch.

    `change_column` is the name under which `tail` says whether a row came or went; None when rows only come.
    """

    id: str
    name: str
    sql: str
    state: str
    error: str | None
    in_effect: bool
    created_batch: int | None
    complete_from: int | None
    changed_batch: int | None
    dropped_batch: int | None
    failed_batch: int | None
    total_rows: int
    owner: str | None
    options: Mapping[str, Any]
    columns: tuple[Column, ...]
    change_column: str | None
    reads: Mapping[str, tuple[str, ...]]
    growing_streams: tuple[str, ...]
    growing_groups: tuple[str, ...]
    estimate: Mapping[str, Any] | None
    delivered_batch: int | None
    sink_error: str | None
    committed_batch: int
    backfill: BackfillStatus | None

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> QueryStatus:
        return _read(
            QueryStatus,
            record,
            columns=_columns,
            reads=lambda given: {stream: tuple(columns) for stream, columns in given.items()},
            growing_streams=tuple,
            growing_groups=tuple,
            backfill=lambda given: None if given is None else _read(BackfillStatus, given),
        )


@dataclass(frozen=True)
class StreamDescription:
    name: str
    columns: tuple[Column, ...]
    event_time: str | None
    lateness: str

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> StreamDescription:
        return _read(StreamDescription, record, columns=_columns)


@dataclass(frozen=True)
class Validation:
    """What a query would answer, read and keep for ever."""

    columns: tuple[Column, ...]
    change_column: str | None
    reads: Mapping[str, tuple[str, ...]]
    growing_streams: tuple[str, ...]
    growing_groups: tuple[str, ...]
    estimate: Mapping[str, Any] | None

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Validation:
        return _read(
            Validation,
            record,
            columns=_columns,
            reads=lambda given: {stream: tuple(columns) for stream, columns in given.items()},
            growing_streams=tuple,
            growing_groups=tuple,
        )


def _columns(given: Any) -> tuple[Column, ...]:
    return tuple(_read(Column, each) for each in given)


def _read(kind: type[Record], record: Mapping[str, Any], **convert: Any) -> Record:
    try:
        names = [entry.name for entry in fields(kind)]  # type: ignore[arg-type]
        return kind(**{name: convert[name](record[name]) if name in convert else record[name] for name in names})
    except (KeyError, TypeError, AttributeError) as error:
        raise UnexpectedAnswer(
            f"the service's answer is no {kind.__name__}: {error!r}", hint="is it a Dovetail service of this version?"
        ) from error
