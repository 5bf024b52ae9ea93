"""/v1/streams: what queries can ask, and more of it."""

from __future__ import annotations

from fastapi import APIRouter

from dovetail.core.errors import StreamError
from dovetail.query.stream_spec import StreamSpec, stream_spec
from dovetail.query.types import SqlType, parse_column_type
from dovetail.service.access.refusals import UnknownStream
from dovetail.service.query_desk import request_of
from dovetail.service.routes.common import SCHEME, Admin, Key, Reader, Served, errors
from dovetail.service.schemas import NewStream, StreamList, StreamView
from dovetail.service.views import stream_view

routes = APIRouter(prefix="/v1", tags=["streams"], dependencies=[SCHEME])


@routes.get("/streams", response_model=StreamList, responses=errors())
async def list_streams(service: Served, _caller: Reader) -> StreamList:
    """All streams, by name."""
    return StreamList(streams=[stream_view(stream) for _, stream in sorted(service.engine.streams.by_name.items())])


@routes.get("/streams/{name}", response_model=StreamView, responses=errors(404))
async def show_stream(name: str, service: Served, _caller: Reader) -> StreamView:
    stream = service.engine.streams.by_name.get(name)
    if stream is None:
        known = ", ".join(sorted(service.engine.streams.by_name)) or "none"
        raise UnknownStream(f"no stream {name!r}", hint=f"streams are: {known}")
    return stream_view(stream)


@routes.post("/streams", status_code=201, response_model=StreamView, responses=errors())
async def declare_stream(body: NewStream, service: Served, caller: Admin, key: Key = "") -> StreamView:
    """Declare a stream that the service opens itself; it is there after a restart, too."""
    service.desk.check_change(caller)
    spec = _spec_of(body)
    request = request_of(caller, key)
    await service.run(lambda: service.session.declare_stream(spec, request=request), is_long=True)
    return stream_view(spec.stream)


def _spec_of(body: NewStream) -> StreamSpec:
    own = {"format": body.format, "lateness": body.lateness}
    if body.event_time is not None:
        own["event_time"] = body.event_time
    columns = tuple((column.name, _type_of(body.name, column.name, column.type)) for column in body.columns)
    return stream_spec(body.name, columns, {**body.options, **own})


def _type_of(stream: str, column: str, text: str) -> SqlType:
    try:
        return parse_column_type(text)
    except ValueError as error:
        raise StreamError(f"stream {stream!r}: column {column!r}: {error}") from None
