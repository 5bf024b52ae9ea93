"""Who may do what: bearer tokens with roles, kept as hashes in a file that only the service's user can read.

A token is 256 random bits, so a plain SHA-256 of it cannot be guessed backwards; nothing else is stored.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import Enum
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any

from dovetail.core.clock import Clock, system_clock
from dovetail.core.errors import ServiceError
from dovetail.core.private_files import close_folder, is_private, open_private, replace_private

PREFIX = "dvt_"
MIN_GIVEN_CHARS = 24
"""A token that somebody chose must at least be too long to try out."""
FIRST_ADMIN = "first-admin"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}\Z")


class Role(Enum):
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def includes(self, other: Role) -> bool:
        order = list(Role)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True)
class Caller:
    """Who sends a request; `name` is the token's, never the token."""

    name: str
    role: Role


@dataclass(frozen=True)
class StoredToken:
    name: str
    role: Role
    sha256: str
    created_at: str

    def __post_init__(self) -> None:
        if not _NAME.match(self.name):
            raise ServiceError(
                f"{self.name!r} cannot name a token", hint="use up to 64 letters, digits and any of _ . @ -"
            )

    def to_json(self) -> dict[str, str]:
        return asdict(self) | {"role": self.role.value}

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> StoredToken:
        return StoredToken(**{**record, "role": Role(record["role"])})


def new_token() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def hash_token(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


class TokenFile:
    """Read again whenever it changed, so that a running service knows a new or revoked token at once."""

    def __init__(self, path: Path, clock: Clock = system_clock) -> None:
        self.path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: tuple[int, int, int] | None = None
        self._stored: tuple[StoredToken, ...] = ()

    @property
    def exists(self) -> bool:
        return self.path.exists()

    def all(self) -> tuple[StoredToken, ...]:
        with self._lock:
            try:
                stat = self.path.stat()
            except FileNotFoundError:
                return ()
            version = stat.st_mtime_ns, stat.st_size, stat.st_ino
            if version != self._seen:
                self._stored = self._read()
                self._seen = version
            return self._stored

    def caller_of(self, token: str) -> Caller | None:
        """Compares with every token in constant time: how long it takes tells nothing of what is right."""
        digest = hash_token(token)
        found = None
        for stored in self.all():
            if hmac.compare_digest(stored.sha256, digest):
                found = Caller(stored.name, stored.role)
        return found

    def create(self, name: str, role: Role, token: str | None = None) -> str:
        """Add a token and return it: the only time that anybody sees it."""
        if token is not None and len(token) < MIN_GIVEN_CHARS:
            raise ServiceError(
                "the given token is too short", hint=f"use {MIN_GIVEN_CHARS} characters or more, chosen at random"
            )
        token = token or new_token()
        created_at = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="seconds")
        added = StoredToken(name, role, hash_token(token), created_at)
        with self._changing() as known:
            if any(stored.name == name for stored in known):
                raise ServiceError(f"token {name!r} exists already", hint="revoke it first, or choose another name")
            self._write((*known, added))
        return token

    def revoke(self, name: str) -> None:
        with self._changing() as known:
            if all(stored.name != name for stored in known):
                listed = ", ".join(stored.name for stored in known) or "none"
                raise ServiceError(f"no token {name!r}", hint=f"tokens are: {listed}")
            self._write(tuple(stored for stored in known if stored.name != name))

    @contextmanager
    def _changing(self) -> Iterator[tuple[StoredToken, ...]]:
        """One writer at a time, also of several processes."""
        close_folder(self.path.parent)
        with open_private(self.path.with_suffix(".lock"), "w") as lock:
            flock(lock, LOCK_EX)
            yield self._read() if self.path.exists() else ()

    def _read(self) -> tuple[StoredToken, ...]:
        if not self.path.is_file():
            raise ServiceError(
                "the tokens file is no file", where=str(self.path), hint="move away what is there, or restore the file"
            )
        if not is_private(self.path):
            raise ServiceError(
                "others can read or change the tokens file", where=str(self.path), hint=f"chmod 600 {self.path}"
            )
        try:
            return tuple(StoredToken.from_json(record) for record in json.loads(self.path.read_text())["tokens"])
        except (ValueError, KeyError, TypeError):
            raise ServiceError(
                "the tokens file cannot be read", where=str(self.path), hint="restore it, or remove it to start anew"
            ) from None

    def _write(self, tokens: tuple[StoredToken, ...]) -> None:
        replace_private(self.path, json.dumps({"tokens": [token.to_json() for token in tokens]}, indent=2) + "\n")
