"""/v1/statements: one statement of text, with the same roles and limits as the routes of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from dovetail.engine.control.execute_statement import StatementRunner
from dovetail.engine.control.registry import QueryRecord, QueryState
from dovetail.engine.control.statement_result import StatementKind
from dovetail.engine.control.statement_result import StatementResult as Executed
from dovetail.frontend.parse.parse_statement import parse_statement
from dovetail.frontend.parse.statement import AlterQuery, CreateQuery, CreateStream, DropQuery, Statement
from dovetail.query.stream_spec import stream_spec
from dovetail.service.access.tokens import Caller, Role
from dovetail.service.query_desk import QueryDraft, request_of
from dovetail.service.routes.common import SCHEME, Key, Reader, Served, Wait, begin_change, errors, note_query
from dovetail.service.schemas import StatementResult, StatementText
from dovetail.service.service import Service
from dovetail.service.views import stream_view

routes = APIRouter(prefix="/v1", tags=["statements"], dependencies=[SCHEME])
_CREATED = {StatementKind.CREATE_QUERY, StatementKind.CREATE_STREAM}


@routes.post(
    "/statements",
    response_model=StatementResult,
    responses={201: {"model": StatementResult}, 202: {"model": StatementResult}, **errors(404, 409)},
)
async def run_statement(
    body: StatementText,
    request: Request,
    response: Response,
    service: Served,
    caller: Reader,
    key: Key = "",
    wait: Wait = 0,
) -> StatementResult:
    """CREATE, ALTER or DROP CONTINUOUS QUERY, CREATE STREAM, SHOW, EXPLAIN (docs/sql.md)."""
    service.desk.check_length(body.statement)
    statement = await run_in_threadpool(parse_statement, body.statement)
    role = _role_of(statement)
    if role is not Role.READ:
        begin_change(request, caller, role)
        request.state.query = getattr(statement, "name", None)
    is_long = isinstance(statement, CreateQuery | CreateStream)
    executed = await service.run(_execute, service, caller, statement, body.statement, key, is_long=is_long)
    done_status = 201 if executed.kind in _CREATED else 200
    response.status_code = done_status
    result = await run_in_threadpool(_result_of, service, executed)
    if executed.id and executed.kind is not StatementKind.EXPLAIN:
        result.query = note_query(request, await service.settled(executed.id, wait), response, done_status)
    return result


def _role_of(statement: Statement) -> Role:
    match statement:
        case CreateStream():
            return Role.ADMIN
        case CreateQuery() | AlterQuery() | DropQuery():
            return Role.WRITE
        case _:
            return Role.READ


def _execute(service: Service, caller: Caller, statement: Statement, text: str, key: str) -> Executed:
    def accept_query(
        sql: str,
        name: str,
        options: Mapping[str, Any],
        *,
        may_replace: bool,
        request: str,  # noqa: ARG001 - the desk makes its own of the key
    ) -> QueryRecord:
        return service.desk.create(caller, QueryDraft(sql, name, options, may_replace), key)

    def accept_stream(declared: CreateStream, request: str) -> None:
        service.desk.check_change(caller)
        spec = stream_spec(declared.name, declared.columns, declared.options)
        service.session.declare_stream(spec, request=request)

    if isinstance(statement, AlterQuery | DropQuery):
        service.desk.check_change_of(caller, statement.name)
        service.desk.check_change(caller, statement.options if isinstance(statement, AlterQuery) else None)
    return StatementRunner(service.engine, accept_query, accept_stream).execute(text, request_of(caller, key))


def _result_of(service: Service, executed: Executed) -> StatementResult:
    result = StatementResult.model_validate(
        {"kind": executed.kind.value.replace(" ", "_"), "message": executed.message, "text": executed.text or None}
    )
    streams = {stream.name: stream for stream in service.engine.streams.descriptions()}
    match executed.kind:
        case StatementKind.SHOW_QUERIES:
            live = [record for record in service.engine.queries.records() if record.state is not QueryState.DROPPED]
            result.queries = [*(service.view(record) for record in live), *service.failed_views()]
        case StatementKind.SHOW_STREAMS:
            result.streams = [stream_view(stream) for stream in streams.values()]
        case StatementKind.CREATE_STREAM:
            result.stream = stream_view(streams[executed.name])
    return result
