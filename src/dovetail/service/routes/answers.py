"""Answers of a query: pages, as JSON or Arrow, and events."""

from __future__ import annotations

from typing import Annotated

import pyarrow as pa
from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from dovetail.engine.control.registry import QueryRecord
from dovetail.query.answer_columns import answer_columns
from dovetail.service.access.http_errors import JsonAnswer
from dovetail.service.access.refusals import BadRequest, NotAcceptable
from dovetail.service.answers.event_slots import EventAnswer
from dovetail.service.answers.events import EventPace, query_events, service_events
from dovetail.service.answers.json_rows import json_rows
from dovetail.service.answers.pages import AnswerReader, Cursor, Page
from dovetail.service.routes.common import SCHEME, Reader, Served, answers_as, errors
from dovetail.service.schemas import ResultPage
from dovetail.service.service import Service
from dovetail.service.views import column_views

routes = APIRouter(prefix="/v1", tags=["answers"], dependencies=[SCHEME])
ARROW = "application/vnd.apache.arrow.stream"
_JSON_ROWS = 1_000
_MAX_BATCH = 10**10 - 1
Batch = Annotated[int, Query(ge=0, le=_MAX_BATCH)]
LastEvent = Annotated[str, Header(alias="Last-Event-ID", pattern=r"^[0-9]{0,10}$")]
_EVENTS = answers_as("text/event-stream")


class PageAsked(BaseModel):
    """Which rows a page shows."""

    from_batch: Annotated[int, Field(ge=0, le=_MAX_BATCH)] = 0
    to_batch: Annotated[int | None, Field(ge=0, le=_MAX_BATCH)] = None
    cursor: Annotated[str | None, Field(max_length=40, description="the «next» of another page")] = None
    last: Annotated[int | None, Field(ge=1, description="the newest rows, in place of from_batch")] = None
    limit: Annotated[int | None, Field(ge=1, description="rows on this page")] = None
    changes: Annotated[bool, Field(description="rows that came and went, in place of those true now")] = False


@routes.get(
    "/queries/{name}/results",
    response_model=ResultPage,
    responses={**errors(404, 406), 200: {"content": {ARROW: {}}, "model": ResultPage}},
)
async def results(
    name: str, request: Request, service: Served, _caller: Reader, asked: Annotated[PageAsked, Query()]
) -> Response:
    """A page of committed answers, in the order in which they were committed."""
    is_arrow = _wants_arrow(request.headers.get("accept", ""))
    most = service.options.limits.max_page_rows
    rows = min(asked.limit or asked.last or (most if is_arrow else _JSON_ROWS), most)
    if asked.last is not None and asked.cursor is not None:
        raise BadRequest("last and cursor exclude each other", hint="send one of them")

    def read() -> tuple[QueryRecord, Page]:
        record = service.desk.find(name)
        reader = AnswerReader(service.engine, record.id)
        cursor = None if asked.cursor is None else Cursor.parse(asked.cursor)
        last = None if asked.last is None else min(asked.last, most)
        if reader.is_updating and not asked.changes:
            if asked.from_batch:
                what = "the answers of this query are taken back: those of some batches alone have no meaning"
                raise BadRequest(what, hint="send changes=true for the rows that came and went, or no from_batch")
            return record, reader.current_page(cursor, last, rows, asked.to_batch)
        start = cursor or Cursor(asked.from_batch) if last is None else reader.last_rows(last)
        return record, reader.page(start, rows, asked.to_batch)

    record, page = await service.run(read, is_long=True)
    if is_arrow:
        return await run_in_threadpool(_arrow_answer, page)
    return await run_in_threadpool(_json_answer, service, record, page)


@routes.get("/queries/{name}/events", responses={**errors(404), **_EVENTS}, response_class=Response)
async def events_of_query(
    name: str,
    service: Served,
    caller: Reader,
    from_batch: Batch | None = None,
    rows: Annotated[int, Query(ge=0, description="rows that one event shows at most")] = 100,
    last_event: LastEvent = "",
) -> Response:
    """Answers of each committed batch, as server-sent events."""
    record = await run_in_threadpool(service.desk.find, name)
    begin = _begin(service, last_event, from_batch)
    pace = EventPace(service.options.heartbeat_s, min(rows, service.options.limits.max_event_rows))
    service.slots.check(caller.name)
    events = query_events(service.engine, service.feed, record.id, begin, pace)
    return EventAnswer(events, service.slots, caller.name)


@routes.get("/events", responses={**errors(), **_EVENTS}, response_class=Response)
async def events_of_service(service: Served, caller: Reader, last_event: LastEvent = "") -> Response:
    """Progress of each committed batch, as server-sent events."""
    pace = EventPace(service.options.heartbeat_s)
    service.slots.check(caller.name)
    return EventAnswer(
        service_events(service.feed, _begin(service, last_event, None), pace), service.slots, caller.name
    )


def _begin(service: Service, last_event: str, from_batch: int | None) -> int:
    if last_event:
        return int(last_event) + 1
    return service.engine.head.batch + 1 if from_batch is None else from_batch


def _wants_arrow(accept: str) -> bool:
    kinds = {part.partition(";")[0].strip().lower() for part in accept.split(",")} - {""}
    if ARROW in kinds:
        return True
    if kinds and not kinds & {"*/*", "application/*", "application/json"}:
        raise NotAcceptable(
            f"no answers as {', '.join(sorted(kinds))[:200]}", hint=f"accept application/json or {ARROW}"
        )
    return False


def _json_answer(service: Service, record: QueryRecord, page: Page) -> Response:
    columns = column_views(answer_columns(service.engine.queries.compiled(record.id)))[: page.table.num_columns]
    return JsonAnswer(
        {
            "query": record.name,
            "id": record.id,
            "columns": [column.model_dump() for column in columns],
            "rows": json_rows(page.table),
            "committed_batch": page.committed_batch,
            "next": str(page.next),
            "has_more": page.has_more,
        }
    )


def _arrow_answer(page: Page) -> Response:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, page.table.schema) as writer:
        writer.write_table(page.table)
    headers = {
        "Dovetail-Next": str(page.next),
        "Dovetail-Has-More": str(page.has_more).lower(),
        "Dovetail-Committed-Batch": str(page.committed_batch),
    }
    return Response(sink.getvalue().to_pybytes(), media_type=ARROW, headers=headers)
