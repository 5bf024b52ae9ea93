"""Whether what the file names on disk can be used, tried before Spark starts: it takes seconds, and then fails late."""

from __future__ import annotations

import os
from pathlib import Path

from dovetail.core.plain_text import is_whole_text

FOLDER_HINT = "give a folder that this user can make or write to"
FILE_HINT = "give a file in a folder that this user can make or write to"


def folder_trouble(path: Path) -> str | None:
    """Why there cannot be a folder for us at `path`; None if there is one, or can be. What is tried is undone."""
    if not is_whole_text(str(path)):
        return f"{str(path)!a} cannot be a path"
    missing = path
    while not os.path.lexists(missing) and not os.path.lexists(missing.parent):
        missing = missing.parent
    try:
        if not os.path.lexists(missing):
            missing.mkdir()
            missing.rmdir()
        elif not missing.is_dir():
            return f"{missing} is no folder"
        elif not os.access(missing, os.R_OK | os.W_OK | os.X_OK):
            return f"{missing} cannot be written to"
    except OSError as error:
        return f"{missing} cannot be made: {error.strerror}"
    return None


def file_trouble(path: Path) -> str | None:
    """The same for a file that is made or written on."""
    if is_whole_text(str(path)) and path.is_dir():
        return f"{path} is a folder"
    if is_whole_text(str(path)) and path.exists():
        return None if os.access(path, os.W_OK) else f"{path} cannot be written to"
    return folder_trouble(path.parent)
