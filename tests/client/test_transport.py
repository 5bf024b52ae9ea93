"""Requests over a connection that fails; the service behind it is a function."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from dovetail.client import Client, transport
from dovetail.client.errors import (
    AccessDenied,
    LimitReached,
    RequestRefused,
    ServiceUnavailable,
    ServiceUnreachable,
    UnexpectedAnswer,
)
from dovetail.core.errors import UnknownName, UnknownQuery

URL = "http://service.test:1"
PROGRESS = {"committed_batch": 1, "progress": None}


@pytest.fixture(autouse=True)
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    pauses: list[float] = []
    monkeypatch.setattr(transport.time, "sleep", pauses.append)
    return pauses


def client(answer: Callable[[httpx.Request], httpx.Response]) -> Client:
    return Client(URL, "secret", transport=httpx.MockTransport(answer))


def refusal(code: int, kind: str, headers: dict[str, str] | None = None) -> httpx.Response:
    body = {"error": {"type": kind, "message": "what", "where": "here", "hint": "this"}}
    return httpx.Response(code, json=body, headers=headers)


def test_every_attempt_of_a_change_carries_the_same_key() -> None:
    keys = []

    def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["Idempotency-Key"])
        if len(keys) < 3:
            raise httpx.ReadError("connection reset")
        return httpx.Response(202, json={"kind": "drop_query", "message": "no query q: nothing to drop"})

    client(answer).execute("DROP CONTINUOUS QUERY q")
    client(answer).execute("DROP CONTINUOUS QUERY q")
    assert [len(keys), len(set(keys[:3])), len(set(keys))] == [4, 1, 2]


def test_a_service_that_stays_away_is_named_with_what_to_start() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("Connection refused", request=request)

    with pytest.raises(ServiceUnreachable, match="Connection refused") as raised:
        client(answer).statuses()
    assert "dovetail serve" in str(raised.value.hint)


def test_the_token_is_sent_and_no_representation_has_it() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["Authorization"] == "Bearer secret"
        return httpx.Response(200, json=PROGRESS)

    asked = client(answer)
    assert asked.progress is None
    assert "secret" not in repr(asked)


@pytest.mark.parametrize(
    ("code", "kind", "raised"),
    [
        (422, "UnknownName", UnknownName),
        (401, "Unauthorized", AccessDenied),
        (403, "RoleTooLow", AccessDenied),
        (429, "TooMany", LimitReached),
        (413, "TooLarge", LimitReached),
        (503, "Unavailable", ServiceUnavailable),
        (418, "SomethingNew", RequestRefused),
        (422, "__name__", RequestRefused),
    ],
)
def test_an_error_of_the_service_is_raised_with_all_it_says(code: int, kind: str, raised: type[Exception]) -> None:
    with pytest.raises(raised) as error:
        client(lambda _: refusal(code, kind)).statuses()
    assert type(error.value) is raised
    assert str(error.value) == "what\n  at: here\n  instead: this"


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"error": "x"}', b'{"error": {"message": 1}}'])
def test_an_error_that_a_proxy_wrote_is_raised_by_its_status(body: bytes) -> None:
    with pytest.raises(RequestRefused, match="status 404"):
        client(lambda _: httpx.Response(404, content=body)).statuses()


def test_an_answer_that_is_no_json_is_named() -> None:
    with pytest.raises(UnexpectedAnswer, match="no JSON"):
        client(lambda _: httpx.Response(200, content=b"<html>")).statuses()


def test_a_short_pause_that_the_service_asks_for_is_made(slept: list[float]) -> None:
    answers = [refusal(429, "TooMany", {"Retry-After": "1"}), httpx.Response(200, json=PROGRESS)]
    assert client(lambda _: answers.pop(0)).progress is None
    assert slept == [1.0]


def test_a_long_pause_is_left_to_the_caller(slept: list[float]) -> None:
    with pytest.raises(LimitReached):
        client(lambda _: refusal(429, "TooMany", {"Retry-After": "60"})).statuses()
    assert slept == []


def test_names_are_quoted() -> None:
    paths = []

    def answer(request: httpx.Request) -> httpx.Response:
        paths.append(request.url.raw_path)
        return refusal(404, "UnknownQuery")

    with pytest.raises(UnknownQuery):
        client(answer).query("a/b?c#d")
    assert paths == [b"/v1/queries/a%2Fb%3Fc%23d"]
