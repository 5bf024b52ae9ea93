"""The service as an ASGI application: routes over a session, behind gate and watch."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from dovetail import __version__
from dovetail.service.access.gate import Gate
from dovetail.service.access.http_errors import JsonAnswer, add_error_handlers
from dovetail.service.config.options import ServiceOptions
from dovetail.service.desired_state import DesiredState
from dovetail.service.routes import answers, queries, statements, streams, system
from dovetail.service.served_session import ServedSession
from dovetail.service.service import Service
from dovetail.service.watch_requests import WatchRequests


def make_app(
    session: ServedSession, options: ServiceOptions, desired: DesiredState | None = None, *, is_supervised: bool = False
) -> FastAPI:
    """`app.state.service` is the service; the session must be started by the caller, and is not stopped here."""
    service = Service(session, options, desired, is_supervised=is_supervised)
    app = FastAPI(
        title="Dovetail",
        summary="Many continuous join queries over the same streams.",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        default_response_class=JsonAnswer,
        lifespan=_lifespan,
    )
    app.state.service = service
    for router in (
        queries.routes,
        answers.routes,
        streams.routes,
        statements.routes,
        system.routes,
        system.unversioned,
    ):
        app.include_router(router)
    add_error_handlers(app)
    app.add_middleware(Gate, options=options, tokens=service.tokens, is_full=service.is_full)
    # Added last, so it is the outermost: it sees what the gate refuses.
    app.add_middleware(WatchRequests, audit=service.audit, metrics=service.metrics)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    service: Service = app.state.service
    service.feed.open()
    unlisten = service.engine.answers.listen(service.metrics.count_batch)
    if not service.is_supervised:
        threading.Thread(target=service.watch_session, name="dovetail-watch", daemon=True).start()
    try:
        yield
    finally:
        unlisten()
        service.feed.close()
        service.audit.close()
