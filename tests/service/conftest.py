"""A service over an in-process session with streams `a` and `b`, and one client per role."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

from dovetail.service.access.tokens import Role, TokenFile
from dovetail.service.app import make_app
from dovetail.service.config.options import ServiceOptions
from dovetail.service.server import Server
from tests.support.served_local import ServedLocalSession

SCHEMA = pa.schema([("k", pa.int32()), ("v", pa.int32()), ("ts", pa.timestamp("us", tz="UTC"))])
EPOCH = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
JOIN = "SELECT a.k, a.v AS av, b.v AS bv FROM a JOIN b ON a.k = b.k WITHIN 10 SECONDS"

Row = tuple[int | None, int | None, float]


class World:
    """Tokens are named like their roles."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.session: ServedLocalSession
        self.token_by_role: dict[Role, str] = {}
        self.server_by_options: dict[ServiceOptions, Server] = {}
        self._clients: list[httpx.Client] = []
        self.open_session()

    def open_session(self, **options: Any) -> ServedLocalSession:
        self.session = ServedLocalSession(self.folder / "checkpoint", **options)
        for name in ("a", "b"):
            self.session.local.create_stream(name, SCHEMA, event_time="ts")
        return self.session

    def options(self, **given: Any) -> ServiceOptions:
        return ServiceOptions(self.folder / "service", **{"port": 0, "heartbeat_s": 0.2, **given})

    def make_tokens(self, options: ServiceOptions) -> None:
        tokens = TokenFile(options.tokens_file)
        for role in Role:
            if role not in self.token_by_role:
                self.token_by_role[role] = tokens.create(role.value, role)

    def client(self, role: Role | None = Role.ADMIN, **given: Any) -> httpx.Client:
        """Of one service for all clients, unless one asks for other options."""
        options = self.options(**given)
        self.make_tokens(options)
        if options not in self.server_by_options:
            self.server_by_options[options] = Server(make_app(self.session, options), options).start()
        client = httpx.Client(base_url=self.server_by_options[options].url, timeout=60)
        self._clients.append(client)
        if role is not None:
            client.headers["Authorization"] = f"Bearer {self.token_by_role[role]}"
        return client

    def stop_servers(self) -> None:
        for server in self.server_by_options.values():
            server.stop()
        self.server_by_options.clear()

    def push(self, *, a: Sequence[Row] = (), b: Sequence[Row] = ()) -> None:
        self.session.push({"a": table_of(a), "b": table_of(b)})

    def audit(self) -> str:
        return self.options().audit_file.read_text()

    def close(self) -> None:
        self.stop_servers()
        self.session.stop()
        for client in self._clients:
            client.close()


def table_of(rows: Sequence[Row]) -> pa.Table:
    moments = [EPOCH + datetime.timedelta(seconds=row[2]) for row in rows]
    columns = [[row[0] for row in rows], [row[1] for row in rows], moments]
    arrays = [pa.array(own, field.type) for own, field in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.close()


@pytest.fixture(scope="module")
def lasting_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """For tests of many examples, which cannot have a new one each."""
    world = World(tmp_path_factory.mktemp("world"))
    yield world
    world.close()


@pytest.fixture
def client(world: World) -> httpx.Client:
    """An admin's."""
    return world.client()


@pytest.fixture(scope="session")
def join() -> str:
    return JOIN
