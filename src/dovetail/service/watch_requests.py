"""The outermost layer: gives every request an id, counts it, and puts changes and refusals into the audit log."""

from __future__ import annotations

import re
import time
import uuid
from datetime import UTC, datetime
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dovetail.core.clock import Clock, system_clock
from dovetail.service.access.audit import AuditLog
from dovetail.service.metrics import Metrics

REQUEST_ID = "X-Request-Id"
UNROUTED = "none"
"""The route of a request that matched none: its path is the client's text and no label."""
_PLAIN_ID = re.compile(r"[A-Za-z0-9_.:-]{1,100}\Z")
_NAME_CHARS = 100


class WatchRequests:
    def __init__(self, app: ASGIApp, audit: AuditLog, metrics: Metrics, clock: Clock = system_clock) -> None:
        self._app = app
        self._audit = audit
        self._metrics = metrics
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(REQUEST_ID, "")
        request_id = given if _PLAIN_ID.match(given) else uuid.uuid4().hex
        scope["state"] = {**scope.get("state", {}), "request_id": request_id}
        began = time.perf_counter()
        status = 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[REQUEST_ID] = request_id
                self._note(scope, status, time.perf_counter() - began)
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception:
            self._note(scope, status, time.perf_counter() - began)
            raise

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        """When the answer begins: an event stream may never end."""
        route = getattr(scope.get("route"), "path", UNROUTED)
        self._metrics.count_request(scope["method"], route, status, seconds)
        if status >= 400 or scope["state"].get("is_change"):
            self._audit.write(self._entry(scope, route, status))

    def _entry(self, scope: Scope, route: str, status: int) -> dict[str, Any]:
        caller = scope["state"].get("caller")
        query = scope["state"].get("query") or scope.get("path_params", {}).get("name")
        return {
            "at": datetime.fromtimestamp(self._clock(), UTC).isoformat(),
            "request_id": scope["state"]["request_id"],
            "token": caller.name if caller else None,
            "role": caller.role.value if caller else None,
            "method": scope["method"][:_NAME_CHARS],
            "route": route,
            "query": str(query)[:_NAME_CHARS] if query else None,
            "status": status,
            "outcome": "refused" if status >= 400 else "accepted" if status == 202 else "done",
            "error": scope["state"].get("error"),
        }
