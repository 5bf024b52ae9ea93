"""Where the service is and how to be let in: as arguments, from the environment, or from the user's own file.

The file is what `dovetail demo` writes for as long as it runs, so that a second terminal needs no token.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from dovetail.client.errors import ConnectionSettingsError

URL_VARIABLE = "DOVETAIL_URL"
TOKEN_VARIABLE = "DOVETAIL_TOKEN"  # noqa: S105 - the name of a variable
DEFAULT_URL = "http://127.0.0.1:8642"


@dataclass(frozen=True)
class Connection:
    url: str
    token: str | None = None

    def __post_init__(self) -> None:
        if not _is_address(self.url):
            raise ConnectionSettingsError(
                f"{self.url!r} is no address of a service", hint=f"write it like {DEFAULT_URL}"
            )
        if self.token is not None and not (self.token.isascii() and self.token.isprintable()):
            raise ConnectionSettingsError("the token holds characters that no token has", hint="copy it again")

    def __repr__(self) -> str:
        """Without the token: representations end up in logs and notebooks."""
        return f"Connection({self.url!r}, token={'given' if self.token else 'none'})"


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 0) >= 0 and url.isascii()
    except ValueError:
        return False


def find_connection(url: str | None = None, token: str | None = None) -> Connection:
    """Each of the two from the first place that has it; a token of the file only goes to the file's own service."""
    kept = read_connection()
    url = url or os.environ.get(URL_VARIABLE) or (kept.url if kept else DEFAULT_URL)
    token = token or os.environ.get(TOKEN_VARIABLE)
    if token is None and kept is not None and kept.url == url:
        token = kept.token
    return Connection(url.rstrip("/"), token)


def connection_file() -> Path:
    """The XDG rule: a relative XDG_CONFIG_HOME counts as none."""
    given = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return (given if given.is_absolute() else Path.home() / ".config") / "dovetail" / "connection.json"


def read_connection() -> Connection | None:
    path = connection_file()
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return Connection(record["url"], record["token"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ConnectionSettingsError) as error:
        raise ConnectionSettingsError(
            f"the connection file cannot be used: {error}", where=str(path), hint="remove it, or correct it"
        ) from error


def write_connection(connection: Connection) -> Path:
    """Only the user may read it: it holds a token. Readers see the old file or the new one, never a part."""
    path = connection_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, json.dumps(asdict(connection), indent=2).encode() + b"\n")
    except OSError as error:
        raise ConnectionSettingsError(
            f"the connection file cannot be written: {error}",
            where=str(path),
            hint="set XDG_CONFIG_HOME to a folder that can be written",
        ) from error
    return path


@contextmanager
def offered_connection(connection: Connection) -> Iterator[Path]:
    """The file names this service for a while; then it is what it was before, unless somebody else wrote it."""
    path = connection_file()
    before = path.read_bytes() if path.is_file() else None
    written = write_connection(connection).read_bytes()
    try:
        yield path
    finally:
        if path.is_file() and path.read_bytes() == written:
            if before is None:
                path.unlink()
            else:
                _replace(path, before)


def _replace(path: Path, content: bytes) -> None:
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
