"""Requests to one service: the token, retries that change nothing twice, and answers that are errors raised as such."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import httpx

from dovetail.client.connection import Connection
from dovetail.client.errors import ServiceUnavailable, ServiceUnreachable, UnexpectedAnswer, error_of
from dovetail.client.events import text_lines

PAUSES_S = (0.1, 0.4, 1.5)
"""Before the second and each further attempt: a service that restarts is away for longer, one that stutters is not."""
PASSING_CODES = (429, 502, 503, 504)
LONGEST_ASKED_PAUSE_S = 2.0
"""What a caller may be kept waiting without being told."""
SILENCE_S = 45.0
"""Three heartbeats of an event stream: a connection that is silent for longer is dead."""


class Transport:
    """Thread-safe, as `httpx.Client` is."""

    def __init__(self, connection: Connection, *, timeout_s: float, transport: httpx.BaseTransport | None) -> None:
        self.connection = connection
        headers = {"Accept": "application/json"}
        if connection.token:
            headers["Authorization"] = f"Bearer {connection.token}"
        self._timeout_s = timeout_s
        self._http = httpx.Client(
            base_url=connection.url,
            headers=headers,
            timeout=timeout_s,
            transport=transport,
            # A proxy of the environment knows no service on this machine.
            trust_env=not _is_local(connection.url),
        )

    def close(self) -> None:
        self._http.close()

    def get(self, path: str, *, params: Mapping[str, Any] | None = None, accept: str | None = None) -> httpx.Response:
        headers = {"Accept": accept} if accept else {}
        return self._attempts(lambda: self._http.get(path, params=_given(params), headers=headers))

    def change(self, method: str, path: str, body: Mapping[str, Any] | None, *, wait_s: float, request: str) -> Any:
        """A change, once: every attempt carries the same key, so that the service knows a retry for what it is."""
        headers = {"Idempotency-Key": request or uuid.uuid4().hex}
        params = {"wait": wait_s} if wait_s else None
        answer = self._attempts(
            lambda: self._http.request(
                method, path, json=body, params=params, headers=headers, timeout=self._timeout_s + wait_s
            )
        )
        return json_of(answer)

    def ask(self, path: str, body: Mapping[str, Any]) -> Any:
        """A POST that may be sent again: it changes nothing, or the same once more."""
        return json_of(self._attempts(lambda: self._http.post(path, json=body)))

    @contextmanager
    def events(self, path: str, *, params: Mapping[str, Any], last_event_id: str | None) -> Iterator[Iterator[str]]:
        """The lines of an event stream; one attempt, because only the caller knows where to go on."""
        headers = {"Accept": "text/event-stream"}
        if last_event_id is not None:
            headers["Last-Event-ID"] = last_event_id
        timeout = httpx.Timeout(self._timeout_s, read=SILENCE_S)
        try:
            with self._http.stream("GET", path, params=_given(params), headers=headers, timeout=timeout) as answer:
                if answer.is_error:
                    answer.read()
                    raise _error_of(answer)
                yield text_lines(answer.iter_bytes())
        except httpx.RequestError as error:
            # Its own cause is pages of the HTTP library, and says no more.
            raise self._unreachable(error) from None

    def _attempts(self, send: Callable[[], httpx.Response]) -> httpx.Response:
        pauses_s = list(PAUSES_S)
        while True:
            pause_s = pauses_s.pop(0) if pauses_s else None
            try:
                answer = send()
            except httpx.RequestError as error:
                if pause_s is None:
                    raise self._unreachable(error) from None
                time.sleep(pause_s)
                continue
            if not answer.is_error:
                return answer
            asked_pause_s = _asked_pause_s(answer)
            if pause_s is None or asked_pause_s is None:
                raise _error_of(answer)
            time.sleep(max(pause_s, asked_pause_s))

    def _unreachable(self, error: Exception) -> ServiceUnreachable:
        return ServiceUnreachable(
            f"no service answers at {self.connection.url} ({str(error) or type(error).__name__})",
            hint="start one with `dovetail serve CONFIG` or `dovetail demo`, or name it by --url or DOVETAIL_URL",
        )


def json_of(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError as error:
        raise UnexpectedAnswer(
            f"the answer of {answer.url.host} is no JSON", hint="is this the address of a Dovetail service?"
        ) from error


def is_passing(error: Exception) -> bool:
    """Whether the same request may succeed a little later."""
    return isinstance(error, ServiceUnreachable | ServiceUnavailable)


def _error_of(answer: httpx.Response) -> Exception:
    try:
        body = answer.json()
    except ValueError:
        body = None
    return error_of(answer.status_code, body)


def _asked_pause_s(answer: httpx.Response) -> float | None:
    """How long the service asks to wait before the same request; None if it is of no use, or for too long."""
    if answer.status_code not in PASSING_CODES:
        return None
    try:
        pause_s = float(answer.headers.get("Retry-After", 0))
    except ValueError:
        return None
    return pause_s if 0 <= pause_s <= LONGEST_ASKED_PAUSE_S else None


def _given(params: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (params or {}).items() if value is not None}


def _is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
