"""What the service says of queries and streams, as frozen records. Keys that a newer service adds are left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from dovetail.client.errors import UnexpectedAnswer
from dovetail.core.errors import QueryError
from dovetail.core.stream_description import Column, StreamDescription

Record = TypeVar("Record")
_HINT = "is it a Dovetail service of this version?"


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

    `in_effect`: no change of the query waits for a batch. `complete_from_text` says what `complete_from` means for this
    kind of query.

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
    complete_from_text: str | None
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

    @property
    def exception(self) -> QueryError | None:
        """What stopped the query alone; None while it is not in quarantine."""
        if self.state != "quarantined":
            return None
        return QueryError(f"query {self.name!r} is stopped since batch {self.failed_batch}: {self.error}")

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> QueryStatus:
        return _read(
            QueryStatus,
            record,
            **_COMPILED,
            backfill=lambda given: None if given is None else _read(BackfillStatus, given),
        )


def stream_from_json(record: Mapping[str, Any]) -> StreamDescription:
    return _read(StreamDescription, record, columns=_columns)


@dataclass(frozen=True, repr=False)
class StatementResult:
    """What a statement answered; `answer` is all of it, as docs/rest.md has it.

    `name` and `id` are of the query or stream that it is about. `rows` are those that SHOW lists, `text` is what
    EXPLAIN tells.
    """

    answer: Mapping[str, Any]

    @staticmethod
    def from_json(answer: Any) -> StatementResult:
        if not isinstance(answer, dict) or not {"kind", "message"} <= answer.keys():
            raise UnexpectedAnswer("the service's answer is no StatementResult", hint=_HINT)
        return StatementResult(answer)

    @property
    def kind(self) -> str:
        return str(self.answer["kind"]).replace("_", " ")

    @property
    def message(self) -> str:
        return str(self.answer["message"])

    @property
    def name(self) -> str:
        return str(self._about.get("name", ""))

    @property
    def id(self) -> str:
        return str(self._about.get("id", ""))

    @property
    def rows(self) -> tuple[Mapping[str, Any], ...]:
        return tuple(self.answer.get("queries") or self.answer.get("streams") or ())

    @property
    def text(self) -> str:
        return self.answer.get("text") or ""

    @property
    def _about(self) -> Mapping[str, Any]:
        return self.answer.get("query") or self.answer.get("stream") or {}

    def __repr__(self) -> str:
        return self.text or self.message


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
        return _read(Validation, record, **_COMPILED)


def _columns(given: Any) -> tuple[Column, ...]:
    return tuple(_read(Column, each) for each in given)


_COMPILED: Mapping[str, Callable[[Any], Any]] = {
    "columns": _columns,
    "reads": lambda given: {stream: tuple(columns) for stream, columns in given.items()},
    "growing_streams": tuple,
    "growing_groups": tuple,
}
"""How the fields of a text that was compiled are read."""


def _read(kind: type[Record], record: Mapping[str, Any], **convert: Any) -> Record:
    try:
        names = [entry.name for entry in fields(kind)]  # type: ignore[arg-type]
        return kind(**{name: convert[name](record[name]) if name in convert else record[name] for name in names})
    except (KeyError, TypeError, AttributeError) as error:
        raise UnexpectedAnswer(f"the service's answer is no {kind.__name__}: {error!r}", hint=_HINT) from error
