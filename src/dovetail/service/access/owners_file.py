"""The lines of the owners' file, each with a checksum over itself and all before it:

    {"owners": 2}
    {"query": "pairs", "owner": "alice", "seal": "5a0fd2a1"}
    {"query": "pairs", "own             a crash cut this off: its query was not accepted yet

Who owns a query may drop it, so a damaged file is refused. Files without seals were written before there were any:
then the text alone must do.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dovetail.core.errors import ServiceError

HEADER = '{"owners": 2}'


@dataclass(frozen=True)
class OwnersRead:
    """`seal` is the last line's, which the next one continues; None if the file must be written anew before that."""

    owner_by_name: Mapping[str, str | None] = field(default_factory=dict)
    seal: int | None = None


def sealed_line(name: str, owner: str | None, before: int) -> tuple[str, int]:
    """The line, and its seal for the next."""
    seal = _seal(name, owner, before)
    return json.dumps({"query": name, "owner": owner, "seal": f"{seal:08x}"}) + "\n", seal


def sealed_text(owner_by_name: Mapping[str, str | None]) -> tuple[str, int]:
    lines, seal = [HEADER + "\n"], 0
    for name, owner in owner_by_name.items():
        line, seal = sealed_line(name, owner, seal)
        lines.append(line)
    return "".join(lines), seal


def read_owners(path: Path) -> OwnersRead:
    """Raises ServiceError where the file is not as it was written; one that is missing has no owners."""
    try:
        *lines, last = path.read_bytes().decode().split("\n")
    except FileNotFoundError:
        return OwnersRead()
    except UnicodeDecodeError:
        raise damaged(path, "is no UTF-8") from None
    except OSError as error:
        raise damaged(path, f"cannot be read ({error.strerror})") from None
    if not lines and not last:
        raise damaged(path, "is empty")
    if _is_whole(last):
        # Only its end is cut off; whatever else follows the record was put there by nobody.
        lines.append(last)
    owner_by_name: dict[str, str | None] = {}
    has_seals, seal = lines[:1] == [HEADER], 0
    for number, line in enumerate(lines, 1):
        if has_seals and number == 1:
            continue
        try:
            name, owner, told = _parsed(line, has_seal=has_seals)
        except (ValueError, KeyError, TypeError):
            raise damaged(path, f"has a broken line {number}") from None
        seal = _seal(name, owner, seal)
        if has_seals and told != f"{seal:08x}":
            raise damaged(path, f"has other letters in line {number} than were written")
        owner_by_name[name] = owner
    return OwnersRead(owner_by_name, seal if has_seals and not last else None)


def damaged(path: Path, how: str) -> ServiceError:
    return ServiceError(
        f"the file of queries' owners {how}",
        where=str(path),
        hint="restore it; or remove it, then its queries are nobody's, and only an admin changes them",
    )


def _seal(name: str, owner: str | None, before: int) -> int:
    return zlib.crc32(json.dumps([name, owner]).encode(), before)


def _parsed(line: str, *, has_seal: bool) -> tuple[str, str | None, str | None]:
    record: dict[str, Any] = json.loads(line)
    name, owner = record["query"], record["owner"]
    if len(record) != 2 + has_seal or not isinstance(name, str) or not isinstance(owner, str | None):
        raise ValueError(line)
    return name, owner, record["seal"] if has_seal else None


def _is_whole(last: str) -> bool:
    """Whether a line without an end has all of its record: a crash cuts off, and adds nothing."""
    try:
        json.JSONDecoder().raw_decode(last)
    except ValueError:
        return False
    return True
