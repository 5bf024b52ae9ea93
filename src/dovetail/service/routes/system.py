"""The service itself: plan, progress, status, metrics, health."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, PlainTextResponse

from dovetail import __version__
from dovetail.engine.explain.explain import explain_plan
from dovetail.service.access.http_errors import JsonAnswer
from dovetail.service.access.refusals import NoFile
from dovetail.service.docs_page import docs_page
from dovetail.service.routes.common import SCHEME, Admin, Form, Reader, Served, answers_as, errors
from dovetail.service.schemas import (
    AppliedFile,
    CallerView,
    FileChangeView,
    HealthView,
    ProgressView,
    SqlText,
    StatusView,
    ValidationView,
)
from dovetail.service.service import RUNNING
from dovetail.service.views import count_by_state, validation_view

routes = APIRouter(prefix="/v1", tags=["service"], dependencies=[SCHEME])
unversioned = APIRouter(tags=["service"])


@routes.get("/plan", responses={**answers_as("text/plain", "application/json"), **errors()}, response_class=Response)
async def plan(service: Served, _caller: Reader, form: Form = "text", *, trace: bool = False) -> Response:
    """The shared plan of all queries, and with `trace` how it was made."""
    found = await run_in_threadpool(lambda: explain_plan(service.engine, form, trace=trace))
    return PlainTextResponse(found) if isinstance(found, str) else JsonAnswer(found)


@routes.post("/validate", response_model=ValidationView, responses=errors())
async def validate(body: SqlText, service: Served, _caller: Reader) -> ValidationView:
    """What a query would read, answer and keep; nothing is created."""
    service.desk.check_length(body.sql)
    return await run_in_threadpool(lambda: validation_view(service.engine, body.sql))


@routes.get("/progress", response_model=ProgressView, responses=errors())
async def progress(service: Served, _caller: Reader) -> Response:
    """Figures of the last batch since the start."""
    engine = service.engine
    # It may wait for a batch that is being told: not on the event loop, or everybody would.
    found = await run_in_threadpool(lambda: {"committed_batch": engine.head.batch, "progress": engine.batches.progress})
    return JsonAnswer(found)


@routes.get("/status", response_model=StatusView, responses=errors())
async def status(service: Served, _caller: Reader) -> Response:
    """Whether the session runs, and if not, why."""
    counts = await run_in_threadpool(count_by_state, service.engine)
    return JsonAnswer(
        {
            **asdict(service.health),
            "committed_batch": service.engine.head.batch,
            "queries": counts,
            "file_failures": [change.to_json() for change in service.desired.failed.values()],
            "version": __version__,
        }
    )


@routes.post("/apply", response_model=AppliedFile, responses=errors(404))
async def apply_file(service: Served, caller: Admin) -> AppliedFile:
    """Read the service's file again, and make the changes of streams and queries that it asks for."""
    if not service.desired.is_of_a_file:
        raise NoFile("this service was not started from a file", hint="send the changes one by one")

    def apply() -> list[dict[str, Any]]:
        service.desired.reload()
        return [change.to_json() for change in service.apply_file(caller.name)]

    changes = await service.run(apply, is_long=True)
    return AppliedFile(changes=[FileChangeView.model_validate(change) for change in changes])


@unversioned.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    """The interface as a page, made here: nothing is loaded from elsewhere."""
    return HTMLResponse(docs_page(request.app.openapi()))


@routes.get("/whoami", response_model=CallerView, responses=errors())
async def whoami(service: Served, caller: Reader) -> Response:
    return JsonAnswer({"name": caller.name, "role": caller.role.value, "auth": service.options.auth})


@unversioned.get(
    "/metrics", responses={**answers_as("text/plain"), **errors()}, response_class=Response, dependencies=[SCHEME]
)
async def metrics(service: Served, _caller: Reader) -> Response:
    """Figures for Prometheus."""
    return Response(await run_in_threadpool(service.metrics.text), media_type=CONTENT_TYPE_LATEST)


@unversioned.get("/healthz", response_model=HealthView, responses={503: {"model": HealthView}})
async def healthz(service: Served) -> Response:
    """Whether the session runs, and if not, why; no token needed, nothing else said."""
    health = service.health
    if health.state == RUNNING:
        return JsonAnswer({"status": "ok"})
    error = {} if health.error is None else {"error": health.error}
    return JsonAnswer({"status": health.state, **error}, 503)
