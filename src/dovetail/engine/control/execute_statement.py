"""Statements on an engine: the text is read, the change accepted or the question answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from dovetail.core.errors import QueryError, SqlError, UnknownQuery
from dovetail.engine.bad_rows import BadRowTotals
from dovetail.engine.control.changelog import Action
from dovetail.engine.control.query_options import query_options
from dovetail.engine.control.registry import QueryRecord, QueryState
from dovetail.engine.control.statement_result import StatementKind, StatementResult
from dovetail.engine.engine import Engine
from dovetail.engine.explain.explain import explain_preview, explain_query
from dovetail.frontend.parse.parse_statement import parse_statement
from dovetail.frontend.parse.statement import (
    AlterQuery,
    CreateQuery,
    CreateStream,
    DropQuery,
    ExplainQuery,
    ExplainSelect,
    SelectText,
    ShowQueries,
    ShowStreams,
)

_Answer = TypeVar("_Answer")

NAMES_LISTED = 10
NEXT_BATCH = "in effect with the next batch"
_SHOWN = ("name", "state", "created_batch", "complete_from", "total_rows", "error", "sql")
"""What SHOW QUERIES tells of each status."""


class AcceptQuery(Protocol):
    """`Queries.create`, or a session's way to it."""

    def __call__(
        self, sql: str, name: str, options: Mapping[str, Any], *, may_replace: bool, request: str
    ) -> QueryRecord: ...


AcceptStream = Callable[[CreateStream, str], None]
"""Declares the stream under the id of a request."""


class StatementRunner:
    """`accept_query` and `accept_stream` are what sessions do their own way."""

    def __init__(self, engine: Engine, accept_query: AcceptQuery, accept_stream: AcceptStream) -> None:
        self._engine = engine
        self._accept_query = accept_query
        self._accept_stream = accept_stream

    def execute(self, text: str, request: str = "") -> StatementResult:
        """`request` is the client's own id of this call: a repetition changes nothing once it was accepted."""
        if not isinstance(text, str):
            raise QueryError(f"the statement is a {type(text).__name__}, and no text", hint="write it as a string")
        match parse_statement(text):
            case CreateQuery() as statement:
                result = self._create_query(statement, request)
            case DropQuery() as statement:
                result = self._drop_query(statement, request)
            case AlterQuery() as statement:
                result = self._alter_query(statement, request)
            case CreateStream() as statement:
                self._accept_stream(statement, request)
                message = f"stream {statement.name} declared"
                result = StatementResult(StatementKind.CREATE_STREAM, message, statement.name)
            case ShowQueries():
                result = self._show_queries()
            case ShowStreams():
                result = self._show_streams()
            case ExplainQuery(name):
                result = self._explain_query(name)
            case ExplainSelect(select):
                result = self._explain_select(select)
        return result

    def _create_query(self, statement: CreateQuery, request: str) -> StatementResult:
        def create(sql: str) -> QueryRecord:
            given = statement.options
            return self._accept_query(sql, statement.name, given, may_replace=statement.is_replace, request=request)

        before = self._engine.queries.named(statement.name)
        record = self._placed(statement.select, create)
        message = _standing(record)
        if before is not None and before.id != record.id:
            message += f"; {_replaced(record, statement)}"
        return _about(StatementKind.CREATE_QUERY, record, message)

    def _drop_query(self, statement: DropQuery, request: str) -> StatementResult:
        known = self._engine.queries.to_change(Action.DROP, statement.name, request)
        if known is None:
            if not statement.if_exists:
                raise self._unknown(statement.name)
            message = f"no query {statement.name}: nothing to drop"
            return StatementResult(StatementKind.DROP_QUERY, message, statement.name)
        record = self._engine.queries.drop(known.id, request=request)
        return _about(StatementKind.DROP_QUERY, record, _standing(record))

    def _alter_query(self, statement: AlterQuery, request: str) -> StatementResult:
        known = self._engine.queries.to_change(Action.SET, statement.name, request)
        if known is None:
            raise self._unknown(statement.name)
        record = self._engine.queries.set_options(known.id, statement.options, request=request)
        if query_options(statement.options, base=record.options) != record.options:
            standing = "had these options before, and others since"
        elif self._engine.head.state.registry.by_id.get(record.id) == record:
            standing = "has these options already"
        else:
            standing = f"has new options: {NEXT_BATCH}"
        return _about(StatementKind.ALTER_QUERY, record, standing)

    def _show_queries(self) -> StatementResult:
        records = [record for record in self._engine.queries.records() if record.state is not QueryState.DROPPED]
        found = (self._engine.queries.status(record.id) for record in records)
        rows = tuple({name: getattr(status, name) for name in _SHOWN} for status in found)
        return StatementResult(StatementKind.SHOW_QUERIES, _counted(len(rows), "query", "queries"), rows=rows)

    def _show_streams(self) -> StatementResult:
        totals, failing = self._engine.head.state.bad_row_totals, self._engine.streams.failing()
        rows = tuple(
            {
                "name": stream.name,
                "columns": ", ".join(f"{name} {sql_type}" for name, sql_type in stream.columns),
                "event_time": stream.event_time,
                "lateness_s": stream.lateness_us / 1e6,
                "on_bad_row": stream.rules.on_bad_row,
                "max_event_time_ahead": stream.rules.max_ahead,
                "bad_rows": totals.get(stream.name, BadRowTotals()).rows,
                "failing": failing[stream.name].cause if stream.name in failing else None,
            }
            for _, stream in sorted(self._engine.streams.by_name.items())
        )
        return StatementResult(StatementKind.SHOW_STREAMS, _counted(len(rows), "stream", "streams"), rows=rows)

    def _explain_query(self, name: str) -> StatementResult:
        dropped = (record for record in reversed(self._engine.queries.records()) if record.name == name)
        record = self._engine.queries.named(name) or next(dropped, None)
        if record is None:
            raise self._unknown(name)
        message = f"how query {record.name} runs"
        text = explain_query(self._engine, record.id)
        return StatementResult(StatementKind.EXPLAIN, message, record.name, record.id, text=text)

    def _explain_select(self, select: SelectText) -> StatementResult:
        text = self._placed(select, lambda sql: explain_preview(self._engine, sql))
        return StatementResult(StatementKind.EXPLAIN, "how this SELECT would run if it were created now", text=text)

    def _placed(self, select: SelectText, use: Callable[[str], _Answer]) -> _Answer:
        """An error in the SELECT is at its place in the whole statement."""
        try:
            return use(select.sql)
        except SqlError as error:
            refused = error
        # Outside, so that only the one that is placed is shown.
        self._engine.queries.compile(select.placed)
        raise refused

    def _unknown(self, name: str) -> UnknownQuery:
        names = sorted(
            record.name for record in self._engine.queries.records() if record.state is not QueryState.DROPPED
        )
        listed = ", ".join(names[:NAMES_LISTED]) or "none"
        more = f" and {len(names) - NAMES_LISTED} more (SHOW QUERIES)" if len(names) > NAMES_LISTED else ""
        return UnknownQuery(f"no query {name!r}", hint=f"queries are: {listed}{more}")


def _about(kind: StatementKind, record: QueryRecord, message: str) -> StatementResult:
    return StatementResult(kind, f"query {record.name} {message}", record.name, record.id)


def _replaced(record: QueryRecord, statement: CreateQuery) -> str:
    """What stays of the query whose place the new one takes."""
    kept = [name for name in record.options.chosen() if name not in statement.options]
    stays = f"keeps its {', '.join(kept)}" if kept else "it had no sink or options that would stay"
    return f"it takes the place of the query of this name, and {stays}"


def _standing(record: QueryRecord) -> str:
    match record.state:
        case QueryState.PENDING:
            return f"accepted: {NEXT_BATCH}"
        case QueryState.RUNNING:
            return f"is running since batch {record.created_batch}"
        case QueryState.QUARANTINED:
            return f"is quarantined: {record.error}"
    if record.dropped_batch is None:
        return "dropped: it ends with the next batch, its answers so far stay"
    return f"was dropped with batch {record.dropped_batch}, its answers until then stay"


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
