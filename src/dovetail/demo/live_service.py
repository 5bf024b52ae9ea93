"""The service beside the demo: on loopback, with a token that only the user's own connection file holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from dovetail import Session
from dovetail.client.connection import Connection, offered_connection
from dovetail.core.errors import ServiceError
from dovetail.service.access.tokens import Role, TokenFile
from dovetail.service.app import make_app
from dovetail.service.config.options import ServiceOptions
from dovetail.service.server import Server


@contextmanager
def live_service(session: Session, data_dir: Path) -> Iterator[str]:
    """Answers while entered, at the address that it gives; `dovetail query ...` finds it by itself."""
    options = ServiceOptions(data_dir)
    token = TokenFile(options.tokens_file).create("demo", Role.ADMIN)
    server = _started(session, options)
    try:
        with offered_connection(Connection(server.url, token)):
            yield server.url
    finally:
        server.stop()


def _started(session: Session, options: ServiceOptions) -> Server:
    try:
        return Server(make_app(session, options), options).start()
    except ServiceError:
        # Another service has the usual port.
        free = replace(options, port=0)
        return Server(make_app(session, free), free).start()
