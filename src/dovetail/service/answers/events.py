"""Server-sent events: the answers of a query batch by batch, and the progress of all batches.

    wait for a commit -> read what it brought from files and registry -> send it -> wait again

While no answers come, an event says why: after a moment, when the reason changes, and every few seconds.

The batch is the event's id. A client that comes back with the last id it saw goes on behind it, whether it was slow,
cut off, or the service was restarted: the files are the buffer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import iterate_in_threadpool, run_in_threadpool

from dovetail.core.errors import UnknownQuery
from dovetail.core.silence import FIRST_S, Silence
from dovetail.engine.control.registry import QueryState
from dovetail.engine.delivery.waiting_for import waiting_for
from dovetail.engine.engine import Engine
from dovetail.service.answers.commit_feed import CommitFeed
from dovetail.service.answers.json_rows import json_bytes, json_rows
from dovetail.service.answers.pages import AnswerReader, BatchAnswers
from dovetail.service.schemas import QueryStateView
from dovetail.service.views import query_state_view

HEARTBEAT = b": heartbeat\n\n"


def event(kind: str, data: Any, event_id: int | None = None) -> bytes:
    r"""One event as bytes.

    >>> event("end", {"reason": "dropped"})
    b'event: end\ndata: {"reason":"dropped"}\n\n'
    """
    lead = b"" if event_id is None else b"id: %d\n" % event_id
    return lead + b"event: " + kind.encode() + b"\ndata: " + json_bytes(data) + b"\n\n"


@dataclass(frozen=True)
class EventPace:
    """`rows` is how many rows one event shows at most."""

    heartbeat_s: float
    rows: int = 0


async def query_events(
    engine: Engine, feed: CommitFeed, query_id: str, from_batch: int, pace: EventPace
) -> AsyncIterator[bytes]:
    """Of one query, beginning with `from_batch`."""
    reader = await run_in_threadpool(AnswerReader, engine, query_id)
    shown: QueryStateView | None = None
    silence = Silence()
    while True:
        pulse = feed.pulse
        try:
            view = await run_in_threadpool(_state_now, engine, query_id)
        except UnknownQuery:
            yield event("end", {"reason": "dropped"})  # so long ago that nobody remembers it
            return
        if shown is None or _visible(view) != _visible(shown):
            yield event("state", view.model_dump())
            shown = view
        async for found in iterate_in_threadpool(reader.batches(from_batch, pace.rows)):
            yield event("batch", _batch_data(view, found), found.batch)
            from_batch = found.batch + 1
            silence.heard()
        from_batch = max(from_batch, view.committed_batch + 1)
        if view.state == QueryState.QUARANTINED.value:
            yield event("end", {"reason": "quarantined"})
            return
        if view.dropped_batch is not None:
            successor = await run_in_threadpool(engine.queries.named, view.name)
            yield event("end", {"reason": "replaced" if successor else "dropped"})
            return
        if feed.end_reason is not None:
            yield event("end", {"reason": feed.end_reason})
            return
        async for beat in _until_telling(engine, query_id, feed, pulse, pace, silence):
            yield beat


async def service_events(feed: CommitFeed, from_batch: int, pace: EventPace) -> AsyncIterator[bytes]:
    """Progress of each batch from `from_batch` on."""
    yield HEARTBEAT
    while True:
        pulse = feed.pulse
        recent = list(feed.recent)
        if recent and from_batch < recent[0][0]:
            yield event("gap", {"from_batch": from_batch, "to_batch": recent[0][0] - 1})
        for batch, progress in recent:
            if batch >= from_batch:
                yield event("progress", progress, batch)
                from_batch = batch + 1
        if feed.end_reason is not None:
            yield event("end", {"reason": feed.end_reason})
            return
        async for beat in _until(feed, pulse, pace):
            yield beat


async def _until(feed: CommitFeed, pulse: asyncio.Event, pace: EventPace) -> AsyncIterator[bytes]:
    """Heartbeats until the pulse."""
    sent_at = time.monotonic()
    while not await feed.wait(pulse, sent_at + pace.heartbeat_s - time.monotonic()):
        yield HEARTBEAT
        sent_at = time.monotonic()


async def _until_telling(
    engine: Engine, query_id: str, feed: CommitFeed, pulse: asyncio.Event, pace: EventPace, silence: Silence
) -> AsyncIterator[bytes]:
    """As `_until`, and in between why no answer comes."""
    sent_at = time.monotonic()
    while not await feed.wait(pulse, min(FIRST_S, sent_at + pace.heartbeat_s - time.monotonic())):
        waiting = await run_in_threadpool(waiting_for, engine, query_id) if silence.may_be_due else None
        if waiting is not None and silence.is_due(waiting):
            yield event("waiting", {"reason": waiting.reason, "text": waiting.text})
        elif time.monotonic() - sent_at < pace.heartbeat_s:
            continue
        else:
            yield HEARTBEAT
        sent_at = time.monotonic()


def _state_now(engine: Engine, query_id: str) -> QueryStateView:
    return query_state_view(engine, query_id)


def _visible(view: QueryStateView) -> dict[str, Any]:
    return view.model_dump(exclude={"total_rows", "committed_batch"})


def _batch_data(view: QueryStateView, found: BatchAnswers) -> dict[str, Any]:
    return {
        "batch": found.batch,
        "query": view.name,
        "id": view.id,
        "row_count": found.row_count,
        "rows": json_rows(found.table),
        "truncated": found.row_count > found.table.num_rows,
    }
