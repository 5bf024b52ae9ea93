"""Keeps the session running: starts it, and starts it again when it fails, ever more rarely.

    prepare -> start -> run ... fails: the cause is said -> pause -> start -> run ...

A session that failed while it ran is well again only once a batch is committed, or if none comes for a while: a start
alone mends nothing that some row or query breaks.

Changes are taken all the while: they are durable without a batch, and the one that follows has them. So a query that
ends the session can be dropped while it is down.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from dovetail.engine.delivery.delivery import Backoff
from dovetail.service.served_session import ServedSession
from dovetail.service.service import Service

_LOOK_EVERY_S = 0.5
QUIET_S = 10.0
"""A session that failed is well if it has no batch to run for so long after its start."""


class StartedSession(ServedSession, Protocol):
    def start(self) -> object: ...


class Stop(Protocol):
    def wait(self, seconds: float) -> bool:
        """Whether a stop is asked for, or comes within this time."""
        ...


class Supervisor:
    """`prepare` runs before the first start; `is_lost` says of a failure that no start in this process can mend it."""

    def __init__(
        self,
        session: StartedSession,
        service: Service,
        stop: Stop,
        *,
        prepare: Callable[[], None] = lambda: None,
        is_lost: Callable[[], bool] = lambda: False,
        backoff: Backoff | None = None,
    ) -> None:
        self._session = session
        self._service = service
        self._stop = stop
        self._prepare: Callable[[], None] | None = prepare
        self._is_lost = is_lost
        self._backoff = backoff or Backoff(first_s=1.0, longest_s=60.0)
        self._failed_running = False

    def run(self) -> None:
        """Until a stop, or until a session that drains its sources has done so. Raises what nobody here can mend."""
        failures = 0
        while not self._stop.wait(0):
            before = self._session.engine.head.batch
            try:
                self._run_once()
            except Exception as error:
                if self._is_lost():
                    raise
                # A batch was committed since: what fails now is something else.
                failures = 1 if self._session.engine.head.batch > before else failures + 1
                pause_s = self._backoff.pause_s(failures)
                self._service.note_failed(error, failures, pause_s)
                if self._stop.wait(pause_s):
                    return
            else:
                return

    def _run_once(self) -> None:
        if self._prepare is not None:
            self._prepare()
            self._prepare = None
        self._session.start()
        since = self._session.engine.head.batch, time.monotonic()
        is_told = not self._failed_running
        if is_told:
            self._service.note_running()
        else:
            self._service.note_tried_again()
        # If it fails from here on, that the next start succeeds says nothing.
        self._failed_running = True
        while not self._session.await_termination(_LOOK_EVERY_S):
            if not is_told and self._is_well(*since):
                self._service.note_running()
                is_told = True
            if self._stop.wait(0):
                return

    def _is_well(self, since_batch: int, since_s: float) -> bool:
        engine = self._session.engine
        is_quiet = engine.batches.under_way is None and time.monotonic() - since_s >= QUIET_S
        return is_quiet or engine.head.batch > since_batch
