"""/v1/streams: what queries can ask, and more of it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from dovetail.core.errors import StreamError
from dovetail.core.stream_description import StreamDescription
from dovetail.query.stream_spec import StreamSpec, stream_spec
from dovetail.query.types import SqlType, parse_column_type
from dovetail.service.access.refusals import UnknownStream
from dovetail.service.query_desk import request_of
from dovetail.service.routes.common import SCHEME, Admin, Key, Reader, Served, errors
from dovetail.service.schemas import BadRowPage, NewStream, RetriedView, StreamList, StreamView
from dovetail.service.service import Service
from dovetail.service.views import bad_row_page, stream_view

routes = APIRouter(prefix="/v1", tags=["streams"], dependencies=[SCHEME])


@routes.get("/streams", response_model=StreamList, responses=errors())
async def list_streams(service: Served, _caller: Reader) -> StreamList:
    """All streams, by name."""
    return StreamList(streams=[stream_view(stream) for stream in service.engine.streams.descriptions()])


@routes.get("/streams/{name}", response_model=StreamView, responses=errors(404))
async def show_stream(name: str, service: Served, _caller: Reader) -> StreamView:
    return stream_view(_known(service, name))


@routes.post("/streams", status_code=201, response_model=StreamView, responses=errors())
async def declare_stream(body: NewStream, service: Served, caller: Admin, key: Key = "") -> StreamView:
    """Declare a stream that the service opens itself; it is there after a restart, too."""
    service.desk.check_change(caller)
    spec = _spec_of(body)
    request = request_of(caller, key)
    await service.run(lambda: service.session.declare_stream(spec, request=request), is_long=True)
    return stream_view(spec.stream.description)


@routes.get("/streams/{name}/bad_rows", response_model=BadRowPage, responses=errors(404))
async def bad_rows(
    name: str, service: Served, _caller: Reader, limit: Annotated[int, Query(ge=1, le=5_000)] = 100
) -> BadRowPage:
    """The rows that are kept aside because the stream cannot use them, the oldest first."""
    _known(service, name)
    return await service.run(lambda: bad_row_page(service.engine, name, limit), is_long=True)


@routes.post("/streams/{name}/bad_rows/retry", status_code=202, response_model=RetriedView, responses=errors(404))
async def retry_bad_rows(name: str, service: Served, caller: Admin, key: Key = "") -> RetriedView:
    """Have them come again with the next batch, judged by the rules that the stream has then."""
    service.desk.check_change(caller)
    _known(service, name)
    request = request_of(caller, key)
    rows = await service.run(lambda: service.engine.streams.retry_bad_rows(name, request=request), is_long=False)
    return RetriedView(stream=name, rows=rows)


def _known(service: Service, name: str) -> StreamDescription:
    by_name = {stream.name: stream for stream in service.engine.streams.descriptions()}
    if name not in by_name:
        raise UnknownStream(f"no stream {name!r}", hint=f"streams are: {', '.join(by_name) or 'none'}")
    return by_name[name]


def _spec_of(body: NewStream) -> StreamSpec:
    own = {"format": body.format, "lateness": body.lateness, "on_bad_row": body.on_bad_row}
    own["max_event_time_ahead"] = body.max_event_time_ahead
    if body.event_time is not None:
        own["event_time"] = body.event_time
    columns = tuple((column.name, _type_of(body.name, column.name, column.type)) for column in body.columns)
    return stream_spec(body.name, columns, {**body.options, **own})


def _type_of(stream: str, column: str, text: str) -> SqlType:
    try:
        return parse_column_type(text)
    except ValueError as error:
        raise StreamError(f"stream {stream!r}: column {column!r}: {error}") from None
