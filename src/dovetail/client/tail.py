"""Answers as they are committed, over as many connections as it takes.

Each event carries one batch whole, and its id is the batch: what was handed on is known exactly, so after a lost
connection the service goes on with the batch after it. Nothing is lost and nothing comes twice.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from dovetail.client.errors import ServiceUnreachable, UnexpectedAnswer
from dovetail.client.events import Event, read_events
from dovetail.client.records import QueryStatus
from dovetail.client.results import read_answers
from dovetail.client.transport import Transport, is_passing
from dovetail.core.answer_batch import AnswerBatch
from dovetail.core.errors import DovetailError, QueryError, SessionError
from dovetail.core.silence import OnWait, say_on_stderr

FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0
EVENT_ROWS = 1_000
"""What one event may show; the rest of a larger batch is fetched."""
STATE_FIELDS = (
    "state",
    "error",
    "in_effect",
    "created_batch",
    "complete_from",
    "complete_from_text",
    "changed_batch",
    "dropped_batch",
    "failed_batch",
    "total_rows",
    "committed_batch",
)


class Tail:
    """Iterates over rows, as JSON writes them (docs/rest.md): each batch whole, in order, once.

    It ends when the query is dropped or replaced; `end_reason` says which. It raises what stopped the query or the
    session. `patience_s` is how long the service may be away in one go. While nothing comes, `on_wait` hears why.
    """

    def __init__(
        self,
        transport: Transport,
        path: str,
        status: QueryStatus,
        *,
        from_batch: int | None,
        patience_s: float,
        on_wait: OnWait | None = None,
    ) -> None:
        self._transport = transport
        self._path = path
        self._patience_s = patience_s
        self._on_wait = on_wait or say_on_stderr
        # Said by number, not as «the next one»: a connection that breaks before its first event loses nothing.
        self._next_batch = status.committed_batch + 1 if from_batch is None else from_batch
        self._last_event_id: str | None = None
        self.status = status
        self.end_reason: str | None = None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.batches():
            yield from batch.rows

    def batches(self) -> Iterator[AnswerBatch]:
        """Batches that have answers, each with its number: with it stored, `from_batch` goes on behind it."""
        for event in self.events():
            if isinstance(event, AnswerBatch):
                yield event

    def events(self) -> Iterator[AnswerBatch | QueryStatus]:
        """Batches, and the status whenever it changed."""
        pause_s, lost_at = FIRST_PAUSE_S, None
        while self.end_reason is None:
            try:
                for event in self._connection():
                    pause_s, lost_at = FIRST_PAUSE_S, None
                    yield event
            except DovetailError as error:
                lost_at = time.monotonic() if lost_at is None else lost_at
                if not is_passing(error) or time.monotonic() - lost_at > self._patience_s:
                    raise
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _connection(self) -> Iterator[AnswerBatch | QueryStatus]:
        params = {"from_batch": self._next_batch, "rows": EVENT_ROWS}
        with self._transport.events(f"{self._path}/events", params=params, last_event_id=self._last_event_id) as lines:
            for event in read_events(lines):
                known = self._read(event)
                if known is not None:
                    yield known
                if self.end_reason is not None:
                    return
        raise ServiceUnreachable(
            "the service closed the connection", hint="it is stopping, or something in between did"
        )

    def _read(self, event: Event) -> AnswerBatch | QueryStatus | None:
        data = _data_of(event)
        if event.kind == "batch" and data["batch"] >= self._next_batch:
            return self._batch(event, data)
        if event.kind == "state":
            return self._state(data)
        if event.kind == "waiting":
            self._on_wait(f"waiting: {data['text']}")
            return None
        if event.kind == "end" and data["reason"] == "failed":
            raise SessionError("the session behind the service has failed", hint="see the log of the service")
        if event.kind == "end" and data["reason"] == "quarantined":
            raise self.status.exception or QueryError(f"query {self.status.name!r} is stopped")
        if event.kind == "end" and data["reason"] != "stopping":
            self.end_reason = data["reason"]
        return None

    def _batch(self, event: Event, data: dict[str, Any]) -> AnswerBatch | None:
        rows = data["rows"]
        if data["truncated"]:
            found = read_answers(self._transport, self._path, batch=data["batch"])
            if found.query_id != self.status.id:
                self.end_reason = "replaced"
                return None
            rows = found.rows
        self._next_batch, self._last_event_id = data["batch"] + 1, event.id or None
        return AnswerBatch(data["batch"], tuple(rows))

    def _state(self, data: dict[str, Any]) -> QueryStatus | None:
        if data["id"] != self.status.id:
            # The name went to another query while nobody listened.
            self.end_reason = "replaced"
            return None
        self.status = replace(self.status, **{name: data[name] for name in STATE_FIELDS})
        return self.status


def _data_of(event: Event) -> dict[str, Any]:
    try:
        data = json.loads(event.data)
    except ValueError as error:
        raise UnexpectedAnswer(f"an event of the service is no JSON: {event.data[:100]!r}") from error
    if not isinstance(data, dict):
        raise UnexpectedAnswer(f"an event of the service is no object: {event.data[:100]!r}")
    return data
