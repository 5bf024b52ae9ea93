"""Small files of the checkpoint: JSON, and under it a line with its checksum. They appear whole or not at all.

What has no such line was written before there was one: then the text alone must do.
"""

from __future__ import annotations

import fnmatch
import json
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from dovetail.core.errors import DamagedFile
from dovetail.core.private_files import private_folder, write_private
from dovetail.core.sync import sync

T = TypeVar("T")
RESTORE = "restore the checkpoint from a backup, or start anew with an empty checkpoint folder"


@dataclass(frozen=True)
class FileKind:
    """What to say of a damaged file: what it is, what is lost with it, what to do."""

    name: str
    lost: str
    remedy: str = RESTORE


def new_token() -> str:
    """Tells writers apart, wherever they run; process ids repeat from container to container."""
    return uuid4().hex[:12]


def sealed(record: Any) -> str:
    text = json.dumps(record, separators=(",", ":"))
    return f"{text}\n{zlib.crc32(text.encode()):08x}\n"


def write_draft(target: Path, text: str, token: str) -> Path:
    """The text in a file beside `target` that nobody else writes; nothing is synced yet."""
    private_folder(target.parent)
    draft = target.with_suffix(f".{token}.draft")
    write_private(draft, text)
    return draft


def write_sealed(target: Path, record: Any, *, syncs: bool) -> None:
    """In place of what was there."""
    draft = write_draft(target, sealed(record), new_token())
    if syncs:
        sync(draft)
    draft.replace(target)
    if syncs:
        sync(target.parent)


def put(draft: Path, target: Path) -> bool:
    """Give the draft its name unless somebody has it; False if so. The draft is gone either way."""
    try:
        os.link(draft, target)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    return True


def read_sealed(path: Path, kind: FileKind, make: Callable[[Any], T]) -> T:
    """What `make` makes of the record. Raises DamagedFile where that is not what was written."""
    try:
        text, _, seal = path.read_text().partition("\n")
    except FileNotFoundError:
        raise damaged(path, kind, "is missing") from None
    except OSError as error:
        raise damaged(path, kind, f"cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise damaged(path, kind, "cannot be read") from None
    if not text:
        raise damaged(path, kind, "is empty")
    if seal and seal.strip() != f"{zlib.crc32(text.encode()):08x}":
        raise damaged(path, kind, "has other bytes than were written")
    try:
        return make(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise damaged(path, kind, "cannot be read") from None


def files_in(folder: Path, pattern: str, kind: FileKind) -> list[Path]:
    """The folder's files of this kind, by name; none where there is no folder. One that cannot be read is an error.

    `Path.glob` says of such a folder that it is empty.
    """
    try:
        names = [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DamagedFile(
            f"the folder of {kind.name} files cannot be read: {error.strerror}",
            where=str(folder),
            hint="let this user read it, and then try again",
        ) from None
    return [folder / name for name in sorted(fnmatch.filter(names, pattern))]


def damaged(path: Path, kind: FileKind, how: str) -> DamagedFile:
    return DamagedFile(f"{kind.name} {path.name} {how}: lost is {kind.lost}", where=str(path), hint=kind.remedy)
