"""Checksums of data files: summed up while they are written, compared when another process first reads them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from isal.isal_zlib import crc32

from dovetail.core.private_files import open_private_bytes

_PIECE_BYTES = 1 << 22
_ALIGNMENT = 64


@dataclass(frozen=True)
class FileIdentity:
    """What changes when somebody writes to a file or puts another in its place."""

    inode: int
    size_bytes: int
    written_ns: int

    @staticmethod
    def of(path: Path) -> FileIdentity:
        found = path.stat()
        return FileIdentity(found.st_ino, found.st_size, found.st_mtime_ns)


MOST_OWN_FILES = 4096
_own_files: dict[Path, FileIdentity] = {}
_own_files_lock = Lock()


def is_own(path: Path, identity: FileIdentity) -> bool:
    """Whether this process wrote the file, and nobody has since: its bytes are those that were summed up."""
    return _own_files.get(path) == identity


def checksum_of(content: Any, before: int = 0) -> int:
    """As `zlib.crc32`, five times as fast: all that is written, or read for the first time, passes through it."""
    return crc32(content, before)


def file_checksum(path: Path, offset: int = 0, size_bytes: int | None = None) -> int:
    """Of the whole file, or of so many bytes from the offset on."""
    checksum, left = 0, _PIECE_BYTES if size_bytes is None else size_bytes
    with path.open("rb") as file:
        file.seek(offset)
        while piece := file.read(min(left, _PIECE_BYTES)):
            checksum = checksum_of(piece, checksum)
            left -= 0 if size_bytes is None else len(piece)
    return checksum


class ChecksumFile:
    """A file that sums up what passes; Arrow writes few large pieces, so Python is not in the way.

    Of a file with ranges, `checksum`, `size_bytes` and `tell` speak of the newest.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = open_private_bytes(path, buffering=0)
        self.checksum = 0
        self.size_bytes = 0
        self.closed = False

    def __enter__(self) -> ChecksumFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.finish()
        else:
            self._file.close()
            self.closed = True

    def begin_range(self) -> int:
        """Where it begins: what is mapped from there must lie as Arrow wants it."""
        offset = self._file.tell()
        padding = -offset % _ALIGNMENT
        if padding:
            self._file.write(bytes(padding))
        self.checksum = self.size_bytes = 0
        return offset + padding

    def finish(self) -> None:
        self._file.close()
        self.closed = True
        with _own_files_lock:
            _own_files[self._path] = FileIdentity.of(self._path)
            if len(_own_files) > MOST_OWN_FILES:
                del _own_files[next(iter(_own_files))]

    def write(self, data: Any) -> int:
        self.checksum = checksum_of(data, self.checksum)
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]
        self.size_bytes += len(data)
        return len(data)

    def tell(self) -> int:
        return self.size_bytes

    def flush(self) -> None:
        """Unbuffered: nothing to do."""

    def close(self) -> None:
        """Arrow closes what it was given; `finish` does it for real."""
