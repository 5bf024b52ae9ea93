"""One session per checkpoint, held by the operating system: a crash lets go of it."""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path
from typing import IO

from dovetail.core.errors import CheckpointLocked
from dovetail.core.private_files import close_folder, open_private


class CheckpointLock:
    """Held from construction until `release`."""

    def __init__(self, root: Path) -> None:
        close_folder(root)
        self._file: IO[str] = open_private(root / ".lock", "a+")
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
