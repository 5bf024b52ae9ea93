"""Connections of the HTTP server: how many, and how long one may take to say what it wants.

A connection that has asked nothing yet, or nothing more, is only a guest. When there are as many connections as may be,
the guest who waits longest makes room for a new one: so nobody who opens connections and says nothing can keep others
out, and a batch does not run out of file descriptors. Where all are busy, a few places are kept for control.
"""

from __future__ import annotations

import asyncio
import resource
from typing import Any, ClassVar, cast

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from dovetail.service.config.options import Limits

KEPT_FOR_CONTROL = 16
"""Connections beyond the limit, which only control requests use."""
_SHARE_OF_FILES = 0.5
"""Of the process's file descriptors: the rest is for batches, whose files are many."""


class Connections:
    """All connections of one server. Used on its event loop only."""

    def __init__(self, limits: Limits) -> None:
        self.head_timeout_s = float(limits.head_timeout_s)
        self._most = min(limits.connections, int(_file_limit() * _SHARE_OF_FILES))
        # In the order in which they came; a dictionary, because a set has none.
        self._guests: dict[GuardedProtocol, None] = {}
        self._busy: set[GuardedProtocol] = set()

    @property
    def is_full(self) -> bool:
        """Whether all places but those for control are busy."""
        return len(self._busy) > self._most

    def enter(self, made: GuardedProtocol) -> bool:
        """A new connection; False if there is no place for it."""
        while self._guests and len(self._guests) + len(self._busy) >= self._most:
            self.leave(longest := next(iter(self._guests)))
            longest.transport.abort()
        if len(self._busy) >= self._most + KEPT_FOR_CONTROL:
            return False
        self._guests[made] = None
        return True

    def begin(self, connection: GuardedProtocol) -> None:
        """It has said what it wants."""
        self._guests.pop(connection, None)
        self._busy.add(connection)

    def rest(self, connection: GuardedProtocol) -> None:
        """It has its answer, and may ask more."""
        if connection in self._busy:
            self._busy.discard(connection)
            self._guests[connection] = None

    def leave(self, connection: GuardedProtocol) -> None:
        self._guests.pop(connection, None)
        self._busy.discard(connection)


class GuardedProtocol(H11Protocol):
    """uvicorn's own, which waits for ever for the head of a request."""

    guard: ClassVar[Connections]
    _head_timer: asyncio.TimerHandle | None = None
    _is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        if not self.guard.enter(self):
            self._is_refused = True
            transport.abort()
            return
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        super().data_received(data)
        cycle = cast("RequestResponseCycle | None", self.cycle)  # none before the first request
        if cycle is not None and not cycle.response_complete:
            self._end_timer()
            self.guard.begin(self)
        elif self._head_timer is None:
            self._await_head()

    def on_response_complete(self) -> None:
        self.guard.rest(self)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_timer()
        self.guard.leave(self)
        if not self._is_refused:
            super().connection_lost(exc)

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self.guard.head_timeout_s, self._give_up)

    def _give_up(self) -> None:
        self._head_timer = None
        self.transport.abort()

    def _end_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def guarded_protocol(connections: Connections) -> type[Any]:
    """A class for one server: uvicorn makes the connections itself."""
    return type("Connection", (GuardedProtocol,), {"guard": connections})


def _file_limit() -> int:
    """As many files as this process may open, once it has asked for all that it may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return wanted if soft == resource.RLIM_INFINITY else soft
