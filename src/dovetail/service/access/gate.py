"""What every request passes first: the right host, a known token, a body within the limit.

Before routing and parsing, so that nobody without a token reaches any of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dovetail.core.errors import DovetailError
from dovetail.service.access.http_errors import error_answer
from dovetail.service.access.rate_limit import RateLimit
from dovetail.service.access.refusals import Overloaded, TooLarge, TooSlow, Unauthorized, UnknownHost
from dovetail.service.access.tokens import Caller, Role, TokenFile
from dovetail.service.config.options import ServiceOptions, is_loopback

HEALTH, DOCS, SCHEMA = "/healthz", "/docs", "/openapi.json"
_CONTROL_PATHS = frozenset({HEALTH, "/v1/status", "/v1/statements", "/v1/apply"})
_CONTROL_METHODS = frozenset({"DELETE", "PATCH"})
_READING_METHODS = frozenset({"GET", "HEAD"})
ANONYMOUS = Caller("anonymous", Role.ADMIN)
"""Everyone, where auth is off."""
_BEARER = "bearer "
_STRICT_POLICY = "default-src 'none'; frame-ancestors 'none'"
_DOCS_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"


class Gate:
    """`is_full`: whether all places but those for control are taken."""

    def __init__(
        self, app: ASGIApp, options: ServiceOptions, tokens: TokenFile, is_full: Callable[[], bool] = lambda: False
    ) -> None:
        self._app = app
        self._options = options
        self._tokens = tokens
        self._is_full = is_full
        self._reads = RateLimit("requests", options.limits.reads_per_s, options.limits.reads_burst)
        self._public = {HEALTH, DOCS, SCHEMA} if options.open_docs else {HEALTH}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        send = _with_security_headers(send, scope["path"])
        headers = Headers(scope=scope)
        try:
            self._check_host(headers.get("host", ""))
            self._check_place(scope["method"], scope["path"])
            if scope["path"] not in self._public:
                caller = scope["state"]["caller"] = self._caller(headers.get("authorization", ""))
                if scope["method"] in _READING_METHODS:
                    self._reads.take(caller.name)
            receive = await self._body(receive, headers)
        except DovetailError as error:
            await error_answer(error, scope)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _caller(self, authorization: str) -> Caller:
        if not self._options.auth:
            return ANONYMOUS
        token = authorization[len(_BEARER) :].strip() if authorization.lower().startswith(_BEARER) else ""
        caller = self._tokens.caller_of(token) if token else None
        if caller is None:
            raise Unauthorized(
                "no token, or one that nobody knows" if not token else "nobody knows this token",
                hint="send «Authorization: Bearer TOKEN»; `dovetail token create` makes one",
            )
        return caller

    def _check_place(self, method: str, path: str) -> None:
        if self._is_full() and path not in _CONTROL_PATHS and method not in _CONTROL_METHODS:
            raise Overloaded("as many requests as may be are under way", hint="try again in a moment")

    async def _body(self, receive: Receive, headers: Headers) -> Receive:
        limits = self._options.limits
        try:
            async with asyncio.timeout(limits.body_timeout_s):
                return await _read_body(receive, headers, limits.max_body_bytes)
        except TimeoutError:
            raise TooSlow("the body did not come in time", hint=f"send it within {limits.body_timeout_s} s") from None

    def _check_host(self, host: str) -> None:
        """On loopback a browser may be made to ask us under a foreign name: only our own names pass."""
        name = _without_port(host)
        if name in self._options.allowed_hosts:
            return
        if self._options.allowed_hosts and not self._options.is_loopback:
            raise UnknownHost(f"this service is not {name[:200]!r}", hint="add it to allowed_hosts if it is")
        if self._options.is_loopback and not is_loopback(name):
            raise UnknownHost(f"this service is not {name[:200]!r}", hint="use localhost, or add it to allowed_hosts")


async def _read_body(receive: Receive, headers: Headers, limit: int) -> Receive:
    """The whole body, counted as it comes: its announced length is only what the client says."""
    too_large = TooLarge("the body is too large", hint=f"send at most {limit:,} bytes")
    announced = headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:20]) > limit:
        raise too_large
    pieces: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            break
        pieces.append(message.get("body", b""))
        if sum(map(len, pieces)) > limit:
            raise too_large
        if not message.get("more_body", False):
            break
    waiting: list[Message] = [{"type": "http.request", "body": b"".join(pieces), "more_body": False}]

    async def receiving() -> Message:
        return waiting.pop() if waiting else await receive()

    return receiving


def _with_security_headers(send: Send, path: str) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["X-Content-Type-Options"] = "nosniff"
            headers["Referrer-Policy"] = "no-referrer"
            headers["Content-Security-Policy"] = _DOCS_POLICY if path == DOCS else _STRICT_POLICY
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return sending


def _without_port(host: str) -> str:
    """The name or address in a Host header.

    >>> [_without_port(host) for host in ("localhost:80", "[::1]:80", "::1")]
    ['localhost', '::1', '::1']
    """
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host
