"""One session per checkpoint, held by the operating system: a crash lets go of it."""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path
from typing import IO

from dovetail.core.errors import CheckpointLocked, SessionError
from dovetail.core.private_files import close_folder, open_private


class CheckpointLock:
    """Held from construction until `release`."""

    def __init__(self, root: Path) -> None:
        try:
            close_folder(root)
            self._file: IO[str] = open_private(root / ".lock", "a+")
        except (OSError, ValueError) as error:
            # ValueError: a path that no filesystem can have, with a NUL or half a character in it.
            is_file = isinstance(error, FileExistsError | NotADirectoryError)
            why = "a file is there" if is_file else getattr(error, "strerror", None) or str(error)
            raise SessionError(
                f"checkpoint_dir {str(root)!a} cannot be used: {why}",
                hint="give a folder that this user can make or write to",
            ) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.seek(0)
            holder = self._file.read().strip() or "another session"
            self._file.close()
            raise CheckpointLocked(
                f"checkpoint {root} is in use by {holder}",
                hint="stop that session first, or give this one a checkpoint_dir of its own",
            ) from None
        self._file.truncate(0)
        self._file.write(f"process {os.getpid()} on {socket.gethostname()}")
        self._file.flush()

    def release(self) -> None:
        if not self._file.closed:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            self._file.close()
