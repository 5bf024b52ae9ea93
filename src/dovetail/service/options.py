"""How the service listens, whom it trusts and what it allows; checked when it is given."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from dovetail.core.errors import ServiceError

DEFAULT_PORT = 8642


@dataclass(frozen=True)
class Limits:
    """What one token, one request and one answer may be.

    `queries_per_token` counts queries that are not dropped; `changes_per_s` and `changes_burst` bound how fast a token
    may create, replace, change and drop. `results_per_batch` bounds the option `max_results_per_batch` of queries that
    no admin creates; None leaves it to them and to the session.
    """

    queries_per_token: int = 1_000
    changes_per_s: float = 50.0
    changes_burst: int = 200
    event_streams: int = 200
    event_streams_per_token: int = 50
    rows_per_page: int = 100_000
    rows_per_event: int = 1_000
    body_bytes: int = 1 << 20
    statement_chars: int = 100_000
    results_per_batch: int | None = None
    wait_s: float = 300.0

    def __post_init__(self) -> None:
        for entry in fields(self):
            if entry.name == "results_per_batch" and self.results_per_batch is None:
                continue
            _check_above_zero(entry.name, getattr(self, entry.name), may_be_fraction=entry.type == "float")


@dataclass(frozen=True)
class ServiceOptions:
    """`data_dir` holds what belongs to the service and not to the session: tokens, owners of queries, audit log.

    `allowed_hosts` are names besides the address itself under which clients may reach it. `open_sinks` are formats
    that queries of every writer may deliver to; all other sinks need an admin, because they write wherever they say.
    `audit_log` takes the place of the file in `data_dir`.
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
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def tokens_file(self) -> Path:
        return self.data_dir / "tokens.json"

    @property
    def owners_file(self) -> Path:
        return self.data_dir / "owners.jsonl"

    @property
    def audit_file(self) -> Path:
        return self.audit_log or self.data_dir / "audit.jsonl"


def _check_above_zero(name: str, value: Any, *, may_be_fraction: bool) -> None:
    kinds = (int, float) if may_be_fraction else (int,)
    if type(value) not in kinds or not 0 < value < float("inf"):
        kind = "number" if may_be_fraction else "whole number"
        raise ServiceError(f"{name} is {value!r}", hint=f"use a {kind} above 0")
