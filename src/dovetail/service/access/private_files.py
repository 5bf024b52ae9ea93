"""Files that only the service's own user may read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TextIO, cast

_OWNER_ONLY = 0o600
_READABLE_BY_OTHERS = 0o077


def private_folder(path: Path) -> Path:
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def open_private(path: Path, mode: str) -> TextIO:
    """Made with permission 0600 from its first moment on, not after the fact."""
    return cast(
        TextIO, open(path, mode, encoding="utf-8", opener=lambda name, flags: os.open(name, flags, _OWNER_ONLY))
    )


def replace_private(path: Path, text: str) -> None:
    """The whole new text or the whole old one, whatever happens in between."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.draft")
    with open_private(draft, "w") as file:
        file.write(text)
    draft.replace(path)


def is_private(path: Path) -> bool:
    return path.stat().st_mode & _READABLE_BY_OTHERS == 0
