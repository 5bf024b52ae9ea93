"""What a power loss would leave of a folder: only what was synced, bytes of files and names in folders alike.

    with SyncRecorder(root) as recorder: ...     every sync is a moment at which the power may go
    for moment in recorder.moments: moment.restore(somewhere)

Bytes count once their file was synced, names once their folder was. What was not synced may be there or not, so each
moment has several images: nothing unsynced is there; all names are there, but unsynced bytes are not; or half of them.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import TracebackType


class Unsynced(Enum):
    """What becomes of what was not synced."""

    GONE = "gone"
    NAMES_STAY = "names stay"
    HALF_STAYS = "half stays"


@dataclass(frozen=True)
class Moment:
    """The power goes here. `acknowledged` is what users were told by then."""

    number: int
    acknowledged: tuple[str, ...]
    files: dict[Unsynced, dict[str, bytes]]

    def restore(self, folder: Path, unsynced: Unsynced) -> None:
        for name, content in self.files[unsynced].items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)


class SyncRecorder:
    """Listens to `os.fsync` of everything under `root`; the folder that holds `root` counts as synced."""

    def __init__(self, root: Path, ignored: Callable[[str], bool] = lambda _path: False) -> None:
        self._root = root
        self._ignored = ignored
        self._lock = threading.Lock()
        self._bytes: dict[int, bytes] = {}
        self._names: dict[int, dict[str, tuple[int, bool]]] = {}
        """By folder, the names that it was synced with: what each stands for, and whether that is a folder."""
        self._kept_open: list[int] = []
        self._acknowledged: list[str] = []
        self._fsync = os.fsync
        self.moments: list[Moment] = []

    def __enter__(self) -> SyncRecorder:
        os.fsync = self._synced  # type: ignore[assignment]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.fsync = self._fsync
        for opened in self._kept_open:
            os.close(opened)

    def acknowledge(self, what: str) -> None:
        """The user is told: from here on it must not be lost."""
        with self._lock:
            self._acknowledged.append(what)
        self.note_moment()

    def note_moment(self) -> None:
        with self._lock:
            files = {kind: self._image(kind) for kind in Unsynced}
            self.moments.append(Moment(len(self.moments), tuple(self._acknowledged), files))

    def _synced(self, opened: int) -> None:
        self.note_moment()
        with self._lock:
            found = os.fstat(opened)
            path = Path(f"/proc/self/fd/{opened}")
            if stat.S_ISDIR(found.st_mode):
                children = list(path.resolve().iterdir())
                self._names[found.st_ino] = {child.name: (child.stat().st_ino, child.is_dir()) for child in children}
            else:
                self._bytes[found.st_ino] = path.read_bytes()
            # So that no other file gets its number.
            self._kept_open.append(os.dup(opened))

    def _image(self, unsynced: Unsynced) -> dict[str, bytes]:
        image: dict[str, bytes] = {}
        if self._root.exists():
            if unsynced is Unsynced.GONE:
                self._add_synced(self._root.stat().st_ino, "", image)
            else:
                self._add_present(unsynced, image)
        return image

    def _add_synced(self, folder: int, prefix: str, image: dict[str, bytes]) -> None:
        """Names that their folder was synced with; whatever was removed since and not synced is there again."""
        for name, (inode, is_folder) in self._names.get(folder, {}).items():
            if self._ignored(f"{prefix}{name}"):
                continue
            if is_folder:
                self._add_synced(inode, f"{prefix}{name}/", image)
            else:
                image[f"{prefix}{name}"] = self._bytes.get(inode, b"")

    def _add_present(self, unsynced: Unsynced, image: dict[str, bytes]) -> None:
        for path in self._root.rglob("*"):
            name = path.relative_to(self._root).as_posix()
            try:
                inode, content = path.stat().st_ino, path.read_bytes() if path.is_file() else None
            except FileNotFoundError:
                continue
            if content is None or self._ignored(name):
                continue
            kept = content[: len(content) // 2] if unsynced is Unsynced.HALF_STAYS else b""
            image[name] = self._bytes.get(inode, kept)
