"""Files and folders that only the user who runs Dovetail can read: rows, answers, options, tokens.

Made so from their first moment on, whatever the process's umask says, on the driver and on executors alike.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from dovetail.core.sync import sync

_OWNER_ONLY = 0o600
_FOLDER_OF_OWNER = 0o700
_FOR_OTHERS = 0o077
_log = logging.getLogger("dovetail")


def private_folder(path: Path) -> Path:
    """Make the folder, and those above it that are missing; what is there stays as it is."""
    try:
        path.mkdir(mode=_FOLDER_OF_OWNER, exist_ok=True)
    except FileNotFoundError:
        private_folder(path.parent)
        path.mkdir(mode=_FOLDER_OF_OWNER, exist_ok=True)
    return path


def close_folder(path: Path) -> None:
    """Make the folder, and take from others what they may do in one that is there."""
    private_folder(path)
    mode = path.stat().st_mode
    if not mode & _FOR_OTHERS:
        return
    try:
        path.chmod(mode & ~_FOR_OTHERS & 0o7777)
    except PermissionError:
        _log.warning("others may enter %s, and its permissions are not ours to change: run chmod 700 on it", path)


def open_private(path: Path, mode: str) -> TextIO:
    return cast(TextIO, open(path, mode, encoding="utf-8", opener=_opener))


def open_private_bytes(path: Path, *, buffering: int = -1) -> BinaryIO:
    """For writing."""
    return open(path, "wb", buffering=buffering, opener=_opener)


def make_private(path: Path) -> Path:
    """An empty file, for writers that open it themselves: what is there keeps its permissions."""
    os.close(_opener(str(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
    return path


def write_private(path: Path, text: str) -> None:
    with open_private(path, "w") as file:
        file.write(text)


def replace_private(path: Path, text: str) -> None:
    """The whole new text or the whole old one, whatever happens in between, a power loss included; then the new one."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.draft")
    try:
        write_private(draft, text)
        sync(draft)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    sync(path.parent)


def append_private(path: Path, text: str, *, syncs: bool) -> None:
    """The text at the end of a file. Where that fails, as on a full disk, nothing of it stays if that can be had."""
    opened = _opener(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        end = os.fstat(opened).st_size
        try:
            _write(opened, text.encode())
            if syncs:
                os.fsync(opened)
        except OSError:
            with suppress(OSError):
                os.ftruncate(opened, end)
            raise
    finally:
        os.close(opened)


def is_private(path: Path) -> bool:
    return path.stat().st_mode & _FOR_OTHERS == 0


def _write(opened: int, content: bytes) -> None:
    """All of it: a disk that fills up takes a part and says so with the next one."""
    while content:
        content = content[os.write(opened, content) :]


def _opener(name: Any, flags: int) -> int:
    return os.open(name, flags, _OWNER_ONLY)
