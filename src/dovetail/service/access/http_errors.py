"""Errors as HTTP answers: one shape for all (docs/rest.md)."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import Scope

from dovetail.core.errors import (
    DovetailError,
    QueryDropped,
    QueryExists,
    RequestReused,
    ServiceError,
    SessionError,
    StoreError,
    UnknownQuery,
)
from dovetail.service.access.refusals import Refusal
from dovetail.service.answers.json_rows import json_bytes

_log = logging.getLogger("dovetail")
_STATUS_BY_ERROR: tuple[tuple[type[DovetailError], int], ...] = (
    (UnknownQuery, 404),
    (QueryExists, 409),
    (QueryDropped, 409),
    (RequestReused, 409),
    (SessionError, 503),
    (ServiceError, 503),
    (StoreError, 500),
    (DovetailError, 422),
)
_TYPE_BY_STATUS = {400: "BadRequest", 404: "NotFound", 405: "MethodNotAllowed"}
_TEXT_CHARS = 2_000
"""Of an error's texts: some repeat what the client sent."""


class JsonAnswer(JSONResponse):
    def render(self, content: Any) -> bytes:
        return json_bytes(content)


def error_answer(error: DovetailError, scope: Scope) -> JsonAnswer:
    status = error.status if isinstance(error, Refusal) else _status_of(error)
    headers = {}
    if isinstance(error, Refusal) and error.retry_after_s is not None:
        headers["Retry-After"] = str(math.ceil(error.retry_after_s))
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status == 500:
        _log.error("a request failed", exc_info=error)
    return _answer(scope, status, type(error).__name__, error.what, error.where, error.hint, headers=headers)


def add_error_handlers(app: FastAPI) -> None:
    @app.exception_handler(DovetailError)
    def own(request: Request, error: Exception) -> Response:
        assert isinstance(error, DovetailError)
        return error_answer(error, request.scope)

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        is_json = first["type"] != "json_invalid"
        status, message = (422, str(first["msg"])) if is_json else (400, "the body is no JSON")
        return _answer(request.scope, status, "InvalidRequest", message, place, "see docs/rest.md, or /docs")

    @app.exception_handler(HTTPException)
    def plain(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        kind = _TYPE_BY_STATUS.get(error.status_code, "HttpError")
        return _answer(request.scope, error.status_code, kind, str(error.detail), headers=error.headers)

    @app.exception_handler(Exception)
    def unexpected(request: Request, _error: Exception) -> Response:
        # Starlette logs it; what it says may be nobody's business.
        return _answer(request.scope, 500, "InternalError", "something failed inside the service", hint="see its log")


def _status_of(error: DovetailError) -> int:
    return next(status for kind, status in _STATUS_BY_ERROR if isinstance(error, kind))


def _answer(
    scope: Scope,
    status: int,
    kind: str,
    message: str,
    where: str | None = None,
    hint: str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
) -> JsonAnswer:
    scope["state"]["error"] = kind
    texts = {"message": message, "where": where, "hint": hint}
    body = {"type": kind, **{key: text and text[:_TEXT_CHARS] for key, text in texts.items()}}
    return JsonAnswer({"error": body}, status, headers)
