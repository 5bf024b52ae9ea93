"""The parts of a running service, as routes use them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.concurrency import run_in_threadpool

from dovetail.core.clock import system_clock
from dovetail.core.errors import DovetailError
from dovetail.core.known_secrets import without_secrets
from dovetail.engine.control.registry import QueryRecord, QueryState
from dovetail.engine.engine import Engine
from dovetail.runtime.spark.worker_errors import own_error
from dovetail.service.access.audit import AuditLog
from dovetail.service.access.owners import Owners
from dovetail.service.access.refusals import Unavailable
from dovetail.service.access.tokens import TokenFile
from dovetail.service.answers.commit_feed import CommitFeed
from dovetail.service.answers.event_slots import EventSlots
from dovetail.service.config.desired import FileChange
from dovetail.service.config.options import ServiceOptions
from dovetail.service.connections import Connections
from dovetail.service.desired_state import DesiredState
from dovetail.service.metrics import Metrics
from dovetail.service.query_desk import QueryDesk
from dovetail.service.schemas import QueryView
from dovetail.service.served_session import ServedSession
from dovetail.service.views import failed_view, query_view

STARTING, RUNNING, STOPPING, FAILED = "starting", "running", "stopping", "failed"
LONG_CALLS = 24
T = TypeVar("T")
_log = logging.getLogger("dovetail")


@dataclass(frozen=True)
class Health:
    """`error` is what ended the session, `hint` what to do; `failures` in a row, `retry_in_s` until the next start."""

    state: str = RUNNING
    error: str | None = None
    hint: str | None = None
    failures: int = 0
    retry_in_s: float | None = None


class Service:
    """Made once per app; `health` is what the watcher of the session and the stopping process say.

    `is_supervised`: somebody starts the session, and starts it again when it fails.
    """

    def __init__(
        self,
        session: ServedSession,
        options: ServiceOptions,
        desired: DesiredState | None = None,
        *,
        is_supervised: bool = False,
    ) -> None:
        self.session = session
        self.desired = desired or DesiredState()
        self.options = options
        self.tokens = TokenFile(options.tokens_file)
        self.owners = Owners(options.owners_file, syncs=self.engine.options.syncs)
        self._forget_owners()
        self.audit = AuditLog(options.audit_file)
        self.metrics = Metrics(self.engine)
        self.feed = CommitFeed(self.engine)
        self.desk = QueryDesk(session, self.owners, options, self.desired)
        self.slots = EventSlots(options.limits, self.metrics)
        self.connections: Connections | None = None
        self._long_calls: CapacityLimiter | None = None
        self.is_supervised = is_supervised
        self.health = Health(STARTING) if is_supervised else Health()
        self._lock = threading.Lock()

    def _forget_owners(self) -> None:
        """Of queries that are no more. If all are gone and nothing ever ran here, somebody emptied the checkpoint."""
        names = {record.name for record in self.engine.queries.records()}
        known = self.owners.names
        if known and not names and self.engine.head.batch < 0:
            _log.warning(
                "the checkpoint %s is new, and yet %s names the owners of %d queries: if it was not emptied on purpose,"
                " stop and restore it",
                self.engine.root,
                self.options.owners_file,
                len(known),
            )
        self.owners.forget_others(names)

    @property
    def engine(self) -> Engine:
        return self.session.engine

    async def run(self, call: Callable[..., T], *given: Any, is_long: bool) -> T:
        """In a worker thread, as all calls of the session: those that may wait for a batch or read much have their own.

        Else they could take all threads, and a drop would wait for them.
        """
        if self._long_calls is None:
            self._long_calls = CapacityLimiter(LONG_CALLS)
        return await to_thread.run_sync(partial(call, *given), limiter=self._long_calls if is_long else None)

    def is_full(self) -> bool:
        """Whether only control requests are taken for now."""
        return self.connections is not None and self.connections.is_full

    def check_open(self) -> None:
        """Raise unless changes are taken: a session that failed or is starting has them with its next batch."""
        if self.health.state == STOPPING:
            raise Unavailable("the session is stopping", hint="reads still work; changes do after the next start")

    def watch_session(self) -> None:
        """Until the session ends: a thread's work. A session that fails stays readable and says so."""
        try:
            self.session.await_termination()
        except Exception as error:  # noqa: BLE001 - whatever ended it, people must hear of it
            self.note_failed(error)
        else:
            self._change_health(Health(STOPPING))

    def note_running(self) -> None:
        self._change_health(Health(RUNNING))

    def note_tried_again(self) -> None:
        """A session that failed has started, and has yet to show that it runs."""
        self._change_health(replace(self.health, retry_in_s=None))

    def note_failed(self, error: Exception, failures: int = 1, retry_in_s: float | None = None) -> None:
        """Where people look: health, status, log. What Spark wraps around an error says nothing to them."""
        what, hint = _cause(error)
        self._change_health(Health(FAILED, what, hint, failures, retry_in_s))
        if self.health.state == FAILED:
            again = "" if retry_in_s is None else f"; it starts again in {retry_in_s:.0f} s (failure {failures})"
            _log.error("the session failed: %s%s%s", what, f" ({hint})" if hint else "", again, exc_info=error)

    def stop_accepting(self) -> None:
        self._change_health(Health(STOPPING))

    def end_events(self) -> None:
        self.feed.end(self.health.state)

    def _change_health(self, health: Health) -> None:
        """A stop is the end: what it does to the session is no failure. Nor is a failure that nobody mends undone."""
        with self._lock:
            if self.health.state != STOPPING and (self.is_supervised or self.health.state == RUNNING):
                self.health = health
        if self.health.state == FAILED and not self.is_supervised:
            self.end_events()

    async def settled(self, query_id: str, wait_s: float) -> QueryView:
        """The query once its changes are in effect, or when the time is up. No thread waits meanwhile."""
        deadline = time.monotonic() + wait_s
        while True:
            pulse = self.feed.pulse
            if await run_in_threadpool(self.engine.queries.is_in_effect, query_id) or self.feed.end_reason is not None:
                break
            if not await self.feed.wait(pulse, deadline - time.monotonic()):
                break
        return await run_in_threadpool(lambda: self.view(self.engine.queries.record(query_id)))

    def apply_file(self, asked_by: str | None = None) -> tuple[FileChange, ...]:
        """Make the changes that the file asks for; each is a line of the audit log."""
        changes = self.desired.apply(self.session)
        for change in changes:
            at = datetime.fromtimestamp(system_clock(), UTC).isoformat()
            self.audit.write({"at": at, "token": asked_by, "route": "the file", **change.to_json()})
        return changes

    def view(self, record: QueryRecord) -> QueryView:
        view = query_view(self.engine, self.owners, record, self.session.delivery_of(record.id))
        failed = self.desired.failed_query(record.name)
        if failed is not None and view.error is None and record.state is not QueryState.DROPPED:
            view.error = f"it runs as it was, because what the file asks for cannot be used ({failed})"
        return view

    def find(self, name: str) -> QueryView:
        """The query that has this name now; else one of the file that cannot be used; else the last that had it."""
        failed = self.desired.failed_query(name)
        if failed is not None and self.engine.queries.named(name) is None:
            return failed_view(failed, self.engine.head.batch)
        return self.view(self.desk.find(name))

    def failed_views(self) -> list[QueryView]:
        """Queries of the file that cannot be used, and of which no earlier one runs."""
        wanted = [change for (kind, _), change in self.desired.failed.items() if kind == "query"]
        missing = [change for change in wanted if self.engine.queries.named(change.name) is None]
        return [failed_view(change, self.engine.head.batch) for change in missing]


def _cause(error: Exception) -> tuple[str, str | None]:
    """What happened, and what to do about it."""
    found = own_error(error)
    if isinstance(found, DovetailError):
        return ": ".join(part for part in (found.what, found.where) if part), found.hint
    lines = without_secrets(str(found)).strip().splitlines()
    return f"{type(found).__name__}: {lines[0] if lines else ''}", "the log has all of it"
