"""How the service listens, whom it trusts and what it allows; checked when it is given."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from dovetail.core.errors import ServiceError
from dovetail.core.private_files import is_private

DEFAULT_PORT = 8642


@dataclass(frozen=True)
class Limits:
    """What one token, one request and one answer may be.

    `queries_per_token` counts queries that are not dropped; `changes_per_s` and `changes_burst` bound how fast a token
    may create, replace, change and drop, `reads_per_s` and `reads_burst` how fast it may ask. `connections` are open at
    once; a request has so many seconds for its head and for its body, and an idle connection until it is closed.
    `max_results_per_batch` bounds the query option of
    that name where no admin sets it; None leaves it to the query and the session.
    """

    queries_per_token: int = 1_000
    max_body_bytes: int = 1 << 20
    max_statement_chars: int = 100_000
    max_results_per_batch: int | None = None
    max_page_rows: int = 100_000
    max_event_rows: int = 1_000
    event_streams: int = 200
    event_streams_per_token: int = 50
    changes_per_s: int = 50
    changes_burst: int = 200
    reads_per_s: int = 200
    reads_burst: int = 1_000
    connections: int = 512
    head_timeout_s: int = 10
    body_timeout_s: int = 30
    idle_timeout_s: int = 30

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if value is not None or entry.name != "max_results_per_batch":
                _check_above_zero(entry.name, value, may_be_fraction=False)


@dataclass(frozen=True)
class Tls:
    """Files in PEM: the certificate with those that signed it, and its key, which only the service's user may read."""

    certificate: Path
    key: Path

    def __post_init__(self) -> None:
        for file in (self.certificate, self.key):
            if not file.is_file():
                raise ServiceError(f"{file} is not there", hint="name a file in PEM")
        if not is_private(self.key):
            raise ServiceError("others can read or change the key", where=str(self.key), hint=f"chmod 600 {self.key}")


@dataclass(frozen=True)
class ServiceOptions:
    """`data_dir` holds what belongs to the service and not to the session: tokens, owners of queries, audit log.

    `allowed_hosts` are names besides the address itself under which clients may reach it. `open_sinks` are formats
    that queries of every writer may deliver to; all other sinks need an admin, because they write wherever they say.
    `audit_log` takes the place of the file in `data_dir`. With `tls` clients come by HTTPS. With `open_docs` the pages
    about the interface itself need no token.
    """

    data_dir: Path
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    auth: bool = True
    allowed_hosts: tuple[str, ...] = ()
    open_sinks: tuple[str, ...] = ()
    heartbeat_s: float = 15.0
    audit_log: Path | None = None
    limits: Limits = field(default_factory=Limits)
    tls: Tls | None = None
    open_docs: bool = False

    def __post_init__(self) -> None:
        if type(self.port) is not int or not 0 <= self.port < 1 << 16:
            raise ServiceError(
                f"port is {self.port!r}", hint=f"use 1 to 65535, or 0 for any; the default is {DEFAULT_PORT}"
            )
        if not isinstance(self.auth, bool):
            raise ServiceError(f"auth is {self.auth!r}", hint="use true or false")
        if not self.host:
            raise ServiceError(f"host is {self.host!r}", hint="use an address of this machine, e.g. 127.0.0.1")
        if not self.auth and not self.is_loopback:
            raise ServiceError(
                f"without auth everyone who reaches {self.host} could create and drop queries",
                hint="listen on 127.0.0.1, or leave auth on",
            )
        _check_above_zero("heartbeat_s", self.heartbeat_s, may_be_fraction=True)

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)

    @property
    def tokens_file(self) -> Path:
        return self.data_dir / "tokens.json"

    @property
    def owners_file(self) -> Path:
        return self.data_dir / "owners.jsonl"

    @property
    def audit_file(self) -> Path:
        return self.audit_log or self.data_dir / "audit.jsonl"


def is_loopback(host: str) -> bool:
    """Whether a name or address is one that only this machine reaches."""
    try:
        return host.lower() == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _check_above_zero(name: str, value: Any, *, may_be_fraction: bool) -> None:
    kinds = (int, float) if may_be_fraction else (int,)
    if type(value) not in kinds or not 0 < value < float("inf"):
        kind = "number" if may_be_fraction else "whole number"
        raise ServiceError(f"{name} is {value!r}", hint=f"use a {kind} above 0")
