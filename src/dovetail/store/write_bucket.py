"""Writing of buckets: as a file, or as the next range of one that is open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.core.private_files import private_folder
from dovetail.core.sync import sync_later
from dovetail.store.bucket_file import SELECTIONS, U64, BucketIndex, BucketMeta, time_range
from dovetail.store.checksum import ChecksumFile


@dataclass(frozen=True)
class BucketContent:
    """What goes into a bucket."""

    columns: Mapping[str, pa.Array]
    selection_words: tuple[U64, ...]
    indexes: Mapping[str, BucketIndex]
    times: npt.NDArray[np.int64] | None
    rows: int
    copied_rows: int = 0

    @property
    def size_bytes(self) -> int:
        """In memory, and about that in a file."""
        arrays = (*self.columns.values(), *self.selection_words, *self.indexes.values())
        return sum(each.nbytes for each in arrays)

    def record_batch(self) -> pa.RecordBatch:
        """As `bucket_file` says what a bucket holds."""
        arrays: list[pa.Array] = list(self.columns.values())
        names = [f"c:{name}" for name in self.columns]
        if self.selection_words:
            arrays.append(_lines(self.selection_words))
            names.append(SELECTIONS)
        for place, index in enumerate(self.indexes.values()):
            arrays += [_padded(index.codes, self.rows), _padded(index.rows, self.rows)]
            names += [f"k:{place}", f"r:{place}"]
            if index.orders is not None:
                arrays.append(_padded(index.orders, self.rows))
                names.append(f"o:{place}")
        return pa.RecordBatch.from_arrays(arrays, names)


def write_bucket(root: Path, content: BucketContent, **described: Any) -> BucketMeta:
    """As a file of its own, `root / described["path"]`."""
    path = root / described["path"]
    private_folder(path.parent)
    with ChecksumFile(path) as file:
        _write(file, content.record_batch())
    sync_later(path)
    return _meta(content, file, **described)


def write_range(file: ChecksumFile, content: BucketContent, **described: Any) -> BucketMeta:
    """As the next range of a file; whoever opened it closes it, and nobody may read it before."""
    offset = file.begin_range()
    _write(file, content.record_batch())
    return _meta(content, file, offset=offset, **described)


def _write(file: ChecksumFile, record_batch: pa.RecordBatch) -> None:
    with pa.ipc.new_file(pa.PythonFile(file, mode="w"), record_batch.schema) as writer:
        writer.write_batch(record_batch)


def _meta(content: BucketContent, file: ChecksumFile, **described: Any) -> BucketMeta:
    min_time_us, max_time_us = time_range(content.times)
    return BucketMeta(
        rows=content.rows,
        copied_rows=content.copied_rows,
        size_bytes=file.size_bytes,
        checksum=file.checksum,
        min_time_us=min_time_us,
        max_time_us=max_time_us,
        columns=tuple(content.columns),
        indexes=tuple((name, len(index.codes)) for name, index in content.indexes.items()),
        **described,
    )


def _lines(words: Sequence[U64]) -> pa.Array:
    """A line of all words for each row."""
    lines = np.stack(words, axis=1)
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(8 * len(words)), len(lines), [None, pa.py_buffer(lines)])


def _padded(values: npt.NDArray[Any], length: int) -> pa.Array:
    if len(values) == length:
        return pa.array(values)
    return pa.array(np.concatenate([values, np.zeros(length - len(values), values.dtype)]))
