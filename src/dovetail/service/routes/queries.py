"""/v1/queries: create, look at, change, replace, drop, explain."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse

from dovetail.engine.control.registry import QueryState
from dovetail.engine.explain.explain import explain_query
from dovetail.service.access.http_errors import JsonAnswer
from dovetail.service.query_desk import QueryDraft
from dovetail.service.routes.common import (
    SCHEME,
    Changing,
    Form,
    Reader,
    Served,
    answers_as,
    errors,
)
from dovetail.service.schemas import NewQuery, OptionChanges, QueryList, QueryText, QueryView, State
from dovetail.service.service import Service
from dovetail.service.views import FAILED

routes = APIRouter(prefix="/v1", tags=["queries"], dependencies=[SCHEME])
_CHANGED: dict[int | str, dict[str, Any]] = {200: {"model": QueryView}, 201: {"model": QueryView}}
_LISTED = 1_000


@routes.post("/queries", status_code=202, response_model=QueryView, responses={**_CHANGED, **errors(409)})
async def create_query(body: NewQuery, change: Changing) -> QueryView:
    """Create a query; it takes effect with the next batch."""
    change.request.state.query = body.name
    draft = QueryDraft(body.sql, body.name, body.options, body.replace)
    return await change.made(change.desk.create, draft, done_status=201)


@routes.get("/queries", response_model=QueryList, responses=errors())
async def list_queries(
    service: Served,
    _caller: Reader,
    state: State | None = None,
    include_dropped: bool = False,
    limit: Annotated[int, Query(ge=1, le=5_000)] = _LISTED,
    after: Annotated[str | None, Query(max_length=200, description="the «next» of another page")] = None,
) -> QueryList:
    """Queries in order of their creation; dropped ones only on demand."""
    return await run_in_threadpool(_listed, service, state, include_dropped, limit, after)


@routes.get("/queries/{name}", response_model=QueryView, responses=errors(404))
async def show_query(name: str, service: Served, _caller: Reader) -> QueryView:
    """The query that has this name now, else the last that had it."""
    return await run_in_threadpool(lambda: service.find(name))


@routes.put("/queries/{name}", status_code=202, response_model=QueryView, responses={**_CHANGED, **errors(409)})
async def put_query(name: str, body: QueryText, change: Changing) -> QueryView:
    """Create a query, or put it in the place of the one that has the name: at one batch edge."""
    draft = QueryDraft(body.sql, name, body.options, may_replace=True)
    return await change.made(change.desk.create, draft, done_status=201)


@routes.patch("/queries/{name}", status_code=202, response_model=QueryView, responses={**_CHANGED, **errors(404, 409)})
async def change_options(name: str, body: OptionChanges, change: Changing) -> QueryView:
    """Change options; those that are not named stay."""
    return await change.made(change.desk.set_options, name, body.options, done_status=200)


@routes.delete("/queries/{name}", status_code=202, response_model=QueryView, responses={**_CHANGED, **errors(404, 409)})
async def drop_query(name: str, change: Changing) -> QueryView:
    """Drop a query; its answers so far stay readable."""
    return await change.made(change.desk.drop, name, done_status=200)


@routes.get(
    "/queries/{name}/explain",
    responses={**answers_as("text/plain", "application/json"), **errors(404)},
    response_class=Response,
)
async def explain(name: str, service: Served, _caller: Reader, form: Form = "text") -> Response:
    """The query's paths through the shared plan, and with whom it shares them."""
    found = await run_in_threadpool(lambda: explain_query(service.engine, service.desk.find(name).id, form))
    return PlainTextResponse(found) if isinstance(found, str) else JsonAnswer(found)


def _listed(service: Service, state: State | None, include_dropped: bool, limit: int, after: str | None) -> QueryList:
    records = service.engine.queries.records()
    if after is not None:
        place = next((place for place, record in enumerate(records) if record.id == after), len(records) - 1)
        records = records[place + 1 :]
    wanted = [
        record
        for record in records
        if (record.state.value == state if state else include_dropped or record.state is not QueryState.DROPPED)
    ]
    views = [service.view(record) for record in wanted[:limit]]
    following = views[-1].id if len(wanted) > limit else None
    if following is None and state in (None, FAILED):
        views += service.failed_views()
    return QueryList(queries=views, next=following)
