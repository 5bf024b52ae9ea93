"""Tails over connections that break at any place; the service behind them is a script of events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.client import Client, tail
from dovetail.client.errors import ServiceUnreachable
from dovetail.core.errors import QueryError, SessionError

STATUS: dict[str, Any] = {
    "id": "q#1",
    "name": "q",
    "sql": "SELECT 1",
    "state": "running",
    "error": None,
    "in_effect": True,
    "created_batch": 0,
    "complete_from": 0,
    "complete_from_text": "complete: it answers what batch SQL finds in all rows since the first batch",
    "changed_batch": None,
    "dropped_batch": None,
    "failed_batch": None,
    "total_rows": 0,
    "owner": None,
    "options": {},
    "columns": [{"name": "x", "type": "int"}],
    "reads": {"s": ["x"]},
    "growing_streams": [],
    "growing_groups": [],
    "change_column": None,
    "estimate": None,
    "delivered_batch": None,
    "sink_error": None,
    "committed_batch": 4,
    "backfill": None,
}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail.time, "sleep", lambda _: None)


class BrokenStream(httpx.SyncByteStream):
    def __init__(self, content: bytes, *, is_cut: bool) -> None:
        self._content, self._is_cut = content, is_cut

    def __iter__(self) -> Iterator[bytes]:
        yield self._content
        if self._is_cut:
            raise httpx.ReadError("connection reset")


class ScriptedService:
    """Batch b has b rows; each connection is cut after so many bytes, the last one is whole."""

    def __init__(self, last_batch: int, cuts: list[int], *, ends: str = "dropped", rows_shown: int = 100) -> None:
        self.last_batch, self.cuts, self.ends, self.rows_shown = last_batch, list(cuts), ends, rows_shown
        self.status = dict(STATUS)
        self.asked: list[tuple[str | None, str | None]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/events"):
            return self._events(request)
        if request.url.path.endswith("/results"):
            return self._results(request)
        return httpx.Response(200, json=self.status)

    def _events(self, request: httpx.Request) -> httpx.Response:
        last_id = request.headers.get("Last-Event-ID")
        self.asked.append((last_id, request.url.params.get("from_batch")))
        content = self.content(int(last_id) + 1 if last_id is not None else int(request.url.params["from_batch"]))
        is_cut = bool(self.cuts)
        stream = BrokenStream(content[: self.cuts.pop(0)] if is_cut else content, is_cut=is_cut)
        return httpx.Response(200, stream=stream, headers={"Content-Type": "text/event-stream"})

    def content(self, first: int) -> bytes:
        events = [_event("state", self.status), ": heartbeat\n\n"]
        for batch in range(first, self.last_batch + 1):
            shown = rows_of(batch)[: self.rows_shown]
            data = {"batch": batch, "query": "q", "id": "q#1", "row_count": batch, "rows": shown}
            events.append(_event("batch", data | {"truncated": len(shown) < batch}, batch))
        return "".join([*events, _event("end", {"reason": self.ends})]).encode()

    def _results(self, request: httpx.Request) -> httpx.Response:
        params = request.url.params
        batch, start = map(int, params["cursor"].split(":")) if "cursor" in params else (int(params["from_batch"]), 0)
        rows = rows_of(batch)
        page = {"query": "q", "id": self.status["id"], "columns": STATUS["columns"], "rows": rows[start : start + 2]}
        page |= {"committed_batch": self.last_batch, "next": f"{batch}:{start + 2}", "has_more": start + 2 < batch}
        return httpx.Response(200, json=page)

    def client(self) -> Client:
        return Client("http://service.test:1", transport=httpx.MockTransport(self))


def rows_of(batch: int) -> list[dict[str, Any]]:
    """With characters that Python, but no event stream, takes for the end of a line."""
    return [{"x": f"{batch}\u2028{row}\x85ü"} for row in range(batch)]


def expected(first: int, last: int) -> list[dict[str, Any]]:
    return [row for batch in range(first, last + 1) for row in rows_of(batch)]


def _event(kind: str, data: dict[str, Any], event_id: int | None = None) -> str:
    head = "" if event_id is None else f"id: {event_id}\n"
    return f"{head}event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"


@given(cuts=st.lists(st.integers(0, 2000), max_size=8), rows_shown=st.integers(0, 9))
def test_nothing_is_lost_and_nothing_comes_twice_wherever_connections_break(cuts: list[int], rows_shown: int) -> None:
    service = ScriptedService(last_batch=9, cuts=cuts, rows_shown=rows_shown)
    followed = service.client().query("q").tail()
    assert list(followed) == expected(5, 9)
    assert followed.end_reason == "dropped"


def test_it_goes_on_after_the_last_batch_that_it_has() -> None:
    service = ScriptedService(last_batch=9, cuts=[])
    service.cuts = [service.content(5).index(b"id: 7\n"), 0]
    assert list(service.client().query("q").tail()) == expected(5, 9)
    assert service.asked == [(None, "5"), ("6", "7"), ("6", "7")]


def test_it_begins_where_it_is_told_to() -> None:
    assert list(ScriptedService(3, []).client().query("q").tail(from_batch=0)) == expected(0, 3)


def test_a_service_that_stops_is_awaited() -> None:
    service = ScriptedService(last_batch=5, cuts=[], ends="stopping")
    rows = iter(service.client().query("q").tail())
    got = [next(rows) for _ in range(5)]
    service.last_batch, service.ends = 6, "dropped"
    assert [*got, *rows] == expected(5, 6)


def test_a_failed_session_raises() -> None:
    with pytest.raises(SessionError, match="failed"):
        list(ScriptedService(5, [], ends="failed").client().query("q").tail())


def test_a_query_that_fails_alone_raises_after_its_answers() -> None:
    service = ScriptedService(last_batch=6, cuts=[], ends="quarantined")
    followed, rows = service.client().query("q").tail(), list[dict[str, Any]]()
    service.status |= {"state": "quarantined", "error": "division by zero", "failed_batch": 7}
    with pytest.raises(QueryError, match="'q' is stopped since batch 7: division by zero"):
        rows.extend(followed)
    assert rows == expected(5, 6)


def test_a_name_that_went_to_another_query_ends_it() -> None:
    service = ScriptedService(last_batch=6, cuts=[])
    followed = service.client().query("q").tail()
    service.status["id"] = "q#2"
    assert list(followed) == []
    assert followed.end_reason == "replaced"


def test_states_are_told_as_they_change() -> None:
    service = ScriptedService(last_batch=4, cuts=[])
    followed = service.client().query("q").tail()
    service.status |= {"state": "quarantined", "error": "division by zero"}
    assert [(event.state, event.error) for event in followed.events() if hasattr(event, "state")] == [
        ("quarantined", "division by zero")
    ]


def test_a_long_silence_takes_no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    service = ScriptedService(last_batch=5, cuts=[])
    service.cuts = [service.content(5).index(b"id: 5\n")]
    moments = iter([0.0])
    monkeypatch.setattr(tail.time, "monotonic", lambda: next(moments, 7200.0))
    assert tail.time.monotonic() == 0.0
    assert list(service.client().query("q").tail(patience_s=60)) == expected(5, 5)


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    service = ScriptedService(last_batch=4, cuts=[0] * 100)
    ticks = iter(range(0, 1000, 7))
    followed = service.client().query("q").tail(patience_s=60)
    monkeypatch.setattr(tail.time, "monotonic", lambda: float(next(ticks)))
    with pytest.raises(ServiceUnreachable):
        list(followed)
    assert 5 <= len(service.asked) <= 12
