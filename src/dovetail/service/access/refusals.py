"""Requests that the service itself refuses, each with its HTTP status."""

from __future__ import annotations

from typing import ClassVar

from dovetail.core.errors import DovetailError


class Refusal(DovetailError):
    """`retry_after_s`: after that time the same request may pass."""

    status: ClassVar[int] = 400
    retry_after_s: float | None = None


class BadRequest(Refusal):
    """The request is malformed."""


class UnknownHost(Refusal):
    """The request was meant for another host: a web page may try to reach this service through a browser."""


class Unauthorized(Refusal):
    """No token, or an unknown one."""

    status = 401


class RoleTooLow(Refusal):
    """The token's role does not allow this."""

    status = 403


class UnknownStream(Refusal):
    status = 404


class NoFile(Refusal):
    """The service has no file to apply."""

    status = 404


class NotAcceptable(Refusal):
    """No answer in a form that the client accepts."""

    status = 406


class TooLarge(Refusal):
    """A body or a statement beyond the limit."""

    status = 413


class TooMany(Refusal):
    """A limit of the caller or of the service is reached."""

    status = 429

    def __init__(self, what: str, *, hint: str, retry_after_s: float) -> None:
        super().__init__(what, hint=hint)
        self.retry_after_s = retry_after_s


class TooSlow(Refusal):
    """The body did not come in time."""

    status = 408


class Overloaded(Refusal):
    """All places are taken; those that are left are for control."""

    status = 503
    retry_after_s = 1.0


class Unavailable(Refusal):
    """The session takes no changes any more."""

    status = 503
    retry_after_s = 5.0


class NotYet(Refusal):
    """The service is starting, and what the request needs is still to come."""

    status = 503
    retry_after_s = 1.0
