"""Rows that a stream cannot use, kept aside in files of their own: as they came, with the reason and the place.

A file is written by one task of one batch and named by the state as long as its rows wait there, and by the manifest of
the batch that took them again, if one did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from dovetail.core.errors import DamagedFile
from dovetail.core.private_files import private_folder
from dovetail.core.sync import sync_later
from dovetail.store.checksum import ChecksumFile, checksum_of, file_checksum
from dovetail.store.layout import bad_rows_file

SOURCE = "#source"
"""Where a row comes from, in words: its file, or its topic, partition and offset. No SQL text can name the column."""
RECORD = "#record"
"""The text of a record that cannot be decoded."""
PLACE_COLUMNS = (SOURCE, RECORD)
"""What sources say of rows that may be bad; NULL for all others."""
_REASON, _POSITION = "#reason", "#position"
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - of times without a zone, too


@dataclass(frozen=True)
class BadFile:
    """Rows of one stream from one task of batch `batch`: the first `rows` of the file. They are asked for again if
    `is_retried`, and then enter with the next batch that can take them. Of a file of the source that cannot be read at
    all `unread` is the name: it stands for the rows in it, and a retry reads it again.
    """

    stream: str
    path: str
    batch: int
    rows: int
    size_bytes: int
    checksum: int
    is_retried: bool = False
    unread: str | None = None


@dataclass(frozen=True)
class BadRow:
    """A row that its stream cannot use. `source` is its file, or its topic, partition and offset, where that is known;
    else `position` counts the stream's rows in a task of the batch. `values` are those of the columns that were read
    then; a time that Python cannot hold is a text. `record` is the text of a record that cannot be decoded.
    """

    reason: str
    batch: int
    source: str | None
    position: int
    values: Mapping[str, Any]
    record: str | None = None


def write_bad_rows(
    root: Path,
    stream: str,
    batch: int,
    attempt: str,
    columns: Mapping[str, pa.Array],
    reasons: list[str],
    positions: npt.NDArray[np.int64],
) -> BadFile:
    """`columns` may have `SOURCE` and `RECORD`."""
    table = pa.table({**columns, _REASON: pa.array(reasons, pa.string()), _POSITION: pa.array(positions)})
    path = bad_rows_file(stream, batch, attempt)
    private_folder((root / path).parent)
    with ChecksumFile(root / path) as file:
        pq.write_table(table, pa.PythonFile(file, mode="w"))
    sync_later(root / path)
    return BadFile(stream, path, batch, table.num_rows, file.size_bytes, file.checksum)


def check_bad_file(root: Path, file: BadFile) -> None:
    """Raise DamagedFile unless it is there with the bytes that were committed."""
    try:
        found = file_checksum(root / file.path)
    except FileNotFoundError:
        raise _damaged(root, file, "is missing") from None
    if found != file.checksum:
        raise _damaged(root, file, "has other bytes than were committed")


def read_as_they_came(root: Path, file: BadFile) -> pa.Table:
    """The rows for another try, with the columns that they came with, and what is known of their place."""
    table = _read(root, file)
    return table.select([name for name in table.column_names if name not in (_REASON, _POSITION)])


def read_bad_rows(root: Path, files: tuple[BadFile, ...]) -> Iterator[BadRow]:
    for file in files:
        table = _read(root, file)
        names = [name for name in table.column_names if not name.startswith("#")]
        columns = {name: _shown(table.column(name)) for name in names}
        sources, records = (_texts(table, name) for name in PLACE_COLUMNS)
        reasons, positions = table.column(_REASON).to_pylist(), table.column(_POSITION).to_pylist()
        for row in range(table.num_rows):
            values = {name: columns[name][row] for name in names}
            yield BadRow(reasons[row], file.batch, sources[row], positions[row], values, records[row])


def _read(root: Path, file: BadFile) -> pa.Table:
    try:
        content = (root / file.path).read_bytes()
    except FileNotFoundError:
        raise _damaged(root, file, "is missing") from None
    if checksum_of(content) != file.checksum:
        raise _damaged(root, file, "has other bytes than were committed")
    return pq.read_table(pa.BufferReader(content)).slice(0, file.rows)


def _damaged(root: Path, file: BadFile, how: str) -> DamagedFile:
    lost = f"{file.rows} bad rows of stream {file.stream!r}, of batch {file.batch}"
    return DamagedFile(
        f"file {Path(file.path).name} {how}: lost are {lost}",
        where=str(root / file.path),
        hint="restore the file from a backup",
    )


def texts_of(column: pa.Array | pa.ChunkedArray) -> list[str | None]:
    """A bad record may be any bytes: what is no UTF-8 is shown by a sign for that.

    >>> texts_of(pa.array([bytes([107, 255]), None]).view(pa.string()))
    ['k�', None]
    """
    found: list[bytes | None] = column.cast(pa.binary()).to_pylist()
    return [None if each is None else each.decode(errors="replace") for each in found]


def _texts(table: pa.Table, name: str) -> list[str | None]:
    return texts_of(table.column(name)) if name in table.column_names else [None] * table.num_rows


def _shown(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_string(column.type):
        return list(texts_of(column))
    if not pa.types.is_timestamp(column.type):
        return list(column.to_pylist())
    micros = column.cast(pa.timestamp("us", column.type.tz)).combine_chunks().view(pa.int64()).to_pylist()
    return [None if each is None else time_text(each) for each in micros]


def time_text(micros: int) -> str:
    """A time as text, of any year.

    >>> time_text(0), time_text(253_402_300_800_000_000), time_text(-(2**63))
    ('1970-01-01 00:00:00', 'year 10000', 'year -290308')
    """
    try:
        return str(_EPOCH + timedelta(microseconds=micros))
    except OverflowError:
        return f"year {np.datetime64(micros // 1_000_000, 's').astype('datetime64[Y]').astype(np.int64) + 1970}"
