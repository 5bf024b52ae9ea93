"""Errors of the client: those that the service answers with, under the names that they have in a session."""

from __future__ import annotations

from typing import Any

from dovetail.core import errors
from dovetail.core.errors import DovetailError


class ConnectionSettingsError(DovetailError):
    """An address, token or connection file that cannot be used."""


class ServiceUnreachable(DovetailError):
    """Nobody answers at the address."""


class UnexpectedAnswer(DovetailError):
    """An answer that no Dovetail service of this version gives."""


class RequestRefused(DovetailError):
    """The service refused a request; a mistake in SQL, options or names is raised as in a session instead."""


class AccessDenied(RequestRefused):
    """No token, an unknown one, or one whose role does not allow it."""


class LimitReached(RequestRefused):
    """A limit of the token or of the service."""


class ServiceUnavailable(RequestRefused):
    """The session is stopping, or has failed."""


_KIND_BY_CODE = {
    401: AccessDenied,
    403: AccessDenied,
    413: LimitReached,
    429: LimitReached,
    502: ServiceUnavailable,
    503: ServiceUnavailable,
    504: ServiceUnavailable,
}


def error_of(code: int, body: Any) -> DovetailError:
    """The error that an answer stands for; whatever the body is, since a proxy may have written it.

    >>> error_of(422, {"error": {"type": "UnknownName", "message": "no stream 'v'", "where": None, "hint": None}})
    UnknownName("no stream 'v'")
    """
    entry = body.get("error") if isinstance(body, dict) else None
    if not isinstance(entry, dict) or not isinstance(entry.get("message"), str):
        return _KIND_BY_CODE.get(code, RequestRefused)(f"the service answered with status {code}")
    known = getattr(errors, str(entry.get("type")), None)
    kind: type[DovetailError] = _KIND_BY_CODE.get(code, RequestRefused)
    if isinstance(known, type) and issubclass(known, DovetailError):
        kind = known
    return kind(entry["message"], where=_text(entry.get("where")), hint=_text(entry.get("hint")))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
