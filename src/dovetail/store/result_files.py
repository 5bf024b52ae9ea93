"""Committed result files are compared with their checksums when a process first reads them."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dovetail.core.errors import DamagedFile
from dovetail.store.checksum import FileIdentity, file_checksum
from dovetail.store.layout import result_batch
from dovetail.store.manifest import ResultFile

_checked: dict[tuple[str, int | None], FileIdentity] = {}
"""By path and checksum, the files as they were when they were compared: whoever writes to one changes that."""


def check_results(root: Path, files: Iterable[ResultFile]) -> None:
    """Raise DamagedFile unless each is there with the bytes that were committed. Reads each once in a process."""
    for file in files:
        path = root / file.path
        identity = _identity(path, file)
        if not _is_checked(path, file, identity):
            _compare(path, file, None if file.checksum is None else file_checksum(path), identity)


def open_result(root: Path, file: ResultFile) -> pq.ParquetFile:
    """The file, to be read: for the first time from the very bytes that were compared."""
    path = root / file.path
    identity = _identity(path, file)
    if _is_checked(path, file, identity):
        return pq.ParquetFile(path)
    with pa.OSFile(str(path)) as opened:
        content = opened.read_buffer()
    _compare(path, file, None if file.checksum is None else zlib.crc32(content), identity)
    try:
        return pq.ParquetFile(pa.BufferReader(content))
    except pa.ArrowInvalid:
        raise _damaged(path, file, "cannot be read") from None


def forget_checked() -> None:
    """As in a new process."""
    _checked.clear()


def _identity(path: Path, file: ResultFile) -> FileIdentity:
    try:
        identity = FileIdentity.of(path)
    except FileNotFoundError:
        raise _damaged(path, file, "is missing") from None
    if identity.size_bytes != file.size_bytes:
        raise _damaged(path, file, f"has {identity.size_bytes} bytes, {file.size_bytes} were committed")
    return identity


def _is_checked(path: Path, file: ResultFile, identity: FileIdentity) -> bool:
    return _checked.get((str(path), file.checksum)) == identity


def _compare(path: Path, file: ResultFile, found: int | None, identity: FileIdentity) -> None:
    if found != file.checksum:
        raise _damaged(path, file, "has other bytes than were committed")
    _checked[str(path), file.checksum] = identity


def _damaged(path: Path, file: ResultFile, how: str) -> DamagedFile:
    batch = result_batch(file.path)
    return DamagedFile(
        f"result file {path.name} of query {file.query} {how}: lost are {file.rows} of its answers in batch {batch}",
        where=str(path),
        hint="restore the file from a backup, or create the query anew, with backfill=True if its sources keep rows",
    )
