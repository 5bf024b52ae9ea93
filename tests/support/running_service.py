"""A service over an in-process session with two streams, on a free port of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from dovetail.service.access.tokens import Role, TokenFile
from dovetail.service.app import make_app
from dovetail.service.config.options import ServiceOptions
from dovetail.service.server import Server
from tests.support.served_local import ServedLocalSession

VIEWS = pa.schema([("usr", pa.int64()), ("page", pa.string()), ("ts", pa.timestamp("us", tz="UTC"))])
CLICKS = pa.schema([("usr", pa.int64()), ("ts", pa.timestamp("us", tz="UTC"))])
SEEN_SQL = "SELECT V.usr, V.page FROM views V JOIN clicks C ON V.usr = C.usr WITHIN 10 SECONDS"
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class RunningService:
    url: str
    session: ServedLocalSession
    options: ServiceOptions

    def token(self, name: str, role: Role) -> str:
        return TokenFile(self.options.tokens_file).create(name, role)


@contextmanager
def running_service(session: ServedLocalSession, data_dir: Path, *, port: int = 0) -> Iterator[RunningService]:
    options = ServiceOptions(data_dir, port=port)
    with Server(make_app(session, options), options) as server:
        yield RunningService(server.url, session, options)


def views_and_clicks(checkpoint_dir: Path) -> ServedLocalSession:
    """A session over two streams; `push_seen` is a batch in which each of its users gives `SEEN_SQL` one answer."""
    session = ServedLocalSession(checkpoint_dir)
    session.local.create_stream("views", VIEWS, event_time="ts")
    session.local.create_stream("clicks", CLICKS, event_time="ts", lateness="2 seconds")
    return session


def push_seen(session: ServedLocalSession, users: Sequence[int], page: str = "home") -> None:
    now = [MOMENT] * len(users)
    views = pa.table({"usr": users, "page": [page] * len(users), "ts": now}, schema=VIEWS)
    session.push({"views": views, "clicks": pa.table({"usr": users, "ts": now}, schema=CLICKS)})
