"""Committed answers are compared with their checksums: ranges whenever they are read, whole files once in a process."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dovetail.core.errors import DamagedFile
from dovetail.store.checksum import FileIdentity, checksum_of, file_checksum
from dovetail.store.layout import result_batch
from dovetail.store.manifest import ResultPart

_checked: dict[tuple[str, int | None, int | None], FileIdentity] = {}
"""By path, checksum and offset, the files as they were when they were compared: whoever writes to one changes that."""
_MAX_CHECKED = 1 << 16
"""Of how many parts a process remembers that; a service that runs for months reads ever more of them."""


def check_results(root: Path, parts: Iterable[ResultPart]) -> None:
    """Raise DamagedFile unless each is there with the bytes that were committed. Reads each once in a process."""
    for part in parts:
        path = root / part.path
        identity = _identity(path, part)
        if _is_checked(path, part, identity):
            continue
        if part.offset is None:
            _compare(path, part, None if part.checksum is None else file_checksum(path), identity)
        else:
            _range(path, part, identity)


def read_result(root: Path, part: ResultPart) -> pa.Table:
    """All its rows."""
    return pa.Table.from_batches(_of_range(root, part)) if part.offset is not None else _opened(root, part).read()


def read_result_batches(root: Path, part: ResultPart, rows_at_once: int) -> Generator[pa.RecordBatch, None, None]:
    """Its rows, so many at a time."""
    if part.offset is not None:
        for batch in _of_range(root, part):
            yield from (batch.slice(lower, rows_at_once) for lower in range(0, batch.num_rows, rows_at_once))
        return
    with _opened(root, part) as parquet:
        yield from parquet.iter_batches(rows_at_once)


def _of_range(root: Path, part: ResultPart) -> list[pa.RecordBatch]:
    path = root / part.path
    content = _range(path, part, _identity(path, part))
    return list(pa.ipc.open_stream(content))


def _range(path: Path, part: ResultPart, identity: FileIdentity) -> pa.Buffer:
    """The part's bytes, compared."""
    with pa.OSFile(str(path)) as opened:
        opened.seek(part.offset)
        content = opened.read_buffer(part.size_bytes)
    _compare(path, part, checksum_of(content), identity)
    return content


def _opened(root: Path, part: ResultPart) -> pq.ParquetFile:
    """A file of its own, to be read: for the first time from the very bytes that were compared."""
    path = root / part.path
    identity = _identity(path, part)
    if _is_checked(path, part, identity):
        return pq.ParquetFile(path)
    with pa.OSFile(str(path)) as opened:
        content = opened.read_buffer()
    _compare(path, part, None if part.checksum is None else checksum_of(content), identity)
    try:
        return pq.ParquetFile(pa.BufferReader(content))
    except pa.ArrowInvalid:
        raise _damaged(path, part, "cannot be read") from None


def forget_checked() -> None:
    """As in a new process."""
    _checked.clear()


def _identity(path: Path, part: ResultPart) -> FileIdentity:
    try:
        identity = FileIdentity.of(path)
    except FileNotFoundError:
        raise _damaged(path, part, "is missing") from None
    if part.offset is None and identity.size_bytes != part.size_bytes:
        raise _damaged(path, part, f"has {identity.size_bytes} bytes, {part.size_bytes} were committed")
    if part.offset is not None and identity.size_bytes < part.offset + part.size_bytes:
        raise _damaged(path, part, f"has {identity.size_bytes} bytes, fewer than were committed")
    return identity


def _is_checked(path: Path, part: ResultPart, identity: FileIdentity) -> bool:
    return _checked.get((str(path), part.checksum, part.offset)) == identity


def _compare(path: Path, part: ResultPart, found: int | None, identity: FileIdentity) -> None:
    if found != part.checksum:
        raise _damaged(path, part, "has other bytes than were committed")
    if len(_checked) >= _MAX_CHECKED:
        _checked.clear()
    _checked[str(path), part.checksum, part.offset] = identity


def _damaged(path: Path, part: ResultPart, how: str) -> DamagedFile:
    batch = result_batch(part.path)
    return DamagedFile(
        f"result file {path.name} of query {part.query} {how}: lost are {part.rows} of its answers in batch {batch}",
        where=str(path),
        hint="restore the file from a backup, or create the query anew, with backfill=True if its sources keep rows",
    )
