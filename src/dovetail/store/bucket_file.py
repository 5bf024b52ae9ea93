"""Buckets: immutable, in the format of Arrow IPC files, with the rows of one store for a range of batches (A1, B5).

One record batch holds, for `rows` rows in order of arrival,
    c:<name>   a payload column
    s          the selection bits of each row, a line of 64-bit words: which selections it passed on arrival (A4)
    k:<i>      codes of index i, ascending: sorted by key group, then key
    r:<i>      the row that each code belongs to
    o:<i>      only of an index with an order: the order value of that row, ascending within a code
Rows whose key or order is NULL are not indexed; the arrays are then padded at the end and `BucketMeta.indexes` says
how many entries count. A bucket is a file or a range of one (`write_bucket.py`), written once under a name of its
attempt. It becomes real when a manifest names it, and is read by memory map: a task touches only the key groups it was
given.

Where rows are shipped (`plan/shipping.py`) a row may lie in several buckets of its batch. One of them is its home, and
home rows come first. An index of the file has the rows that were sent there for its key, so that over all buckets of
the batch it has each row once; whatever is not read through one looks at home rows only.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.core.errors import BucketCorrupt, BucketMissing, SessionError
from dovetail.kernels.match.special_values import NULL_TIME
from dovetail.store.checksum import FileIdentity, checksum_of, file_checksum, is_own

U64 = npt.NDArray[np.uint64]
U32 = npt.NDArray[np.uint32]
I64 = npt.NDArray[np.int64]

FAILED = ""
"""Stands for the name of what does not count; nothing has it."""

_RESTORE_HINT = "restore the file from a backup of the checkpoint, or start anew with an empty checkpoint folder"


@dataclass(frozen=True)
class BucketMeta:
    """What a manifest says of a bucket. Batches are [lower_batch, upper_batch], both included.

    It is `size_bytes` of its file from `offset` on; without an offset it is the whole file. The last `copied_rows` of
    the rows are at home in other buckets of the batch. An index or selection that is called `FAILED` does not count: it
    failed on rows of another bucket of the batch, and all must tell the same.
    """

    store: str
    path: str
    lower_batch: int
    upper_batch: int
    split: int
    level: int
    rows: int
    size_bytes: int
    checksum: int
    min_time_us: int | None
    max_time_us: int | None
    columns: tuple[str, ...]
    selections: tuple[str, ...]
    keeps_all: bool
    indexes: tuple[tuple[str, int], ...]
    copied_rows: int = 0
    offset: int | None = None

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> BucketMeta:
        fields = dict(record)
        fields["columns"] = tuple(fields["columns"])
        # Every bucket of a store names hundreds of them, mostly the same: a task is sent each text once.
        fields["selections"] = tuple(map(sys.intern, fields["selections"]))
        fields["indexes"] = tuple((name, count) for name, count in fields["indexes"])
        if fields.pop("cell", None) is not None:
            # A row lay in several cells; whoever read all of them as one store would answer it several times.
            raise SessionError(
                "this checkpoint was made with the layout 'join_matrix', which is no more",
                hint="run it with the Dovetail version that wrote it, or start anew with an empty checkpoint folder",
            )
        return BucketMeta(**fields)

    @property
    def key(self) -> str:
        """No two buckets have the same; several may have the same path."""
        return self.path if self.offset is None else f"{self.path}@{self.offset}"

    @property
    def home_rows(self) -> int:
        """How many rows, the first ones, are at home here: over all buckets each row once."""
        return self.rows - self.copied_rows

    def without(self, selections: Collection[str], indexes: Collection[str]) -> BucketMeta:
        """The same bucket, in which some selections and indexes do not count."""
        return replace(
            self,
            selections=tuple(FAILED if name in selections else name for name in self.selections),
            indexes=tuple((FAILED if name in indexes else name, count) for name, count in self.indexes),
        )

    @property
    def place(self) -> tuple[str, int]:
        """No two buckets of a batch have the same; every task sorts them by it."""
        return self.store, self.split

    @property
    def layout(self) -> tuple[object, ...]:
        """Buckets merge only with buckets of the same layout."""
        return (self.columns, self.selections, self.keeps_all, tuple(name for name, _ in self.indexes))


class OfStore(Protocol):
    """A bucket, or anything else that a batch says of one store."""

    @property
    def store(self) -> str: ...


Told = TypeVar("Told", bound=OfStore)


def by_store(told: Iterable[Told]) -> dict[str, list[Told]]:
    """In the order in which they come; there may be thousands of stores, so nobody should look for each one's own."""
    found: dict[str, list[Told]] = {}
    for each in told:
        found.setdefault(each.store, []).append(each)
    return found


@dataclass(frozen=True)
class BucketIndex:
    """`codes` ascending; `rows[i]` has code `codes[i]` and, if the index has an order, order value `orders[i]`."""

    codes: U64
    rows: U32
    orders: I64 | None = None

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes + self.rows.nbytes + (0 if self.orders is None else self.orders.nbytes)

    def moved(self, places: npt.NDArray[np.int64]) -> BucketIndex:
        """The same index where row i lies at `places[i]`."""
        return BucketIndex(self.codes, places[self.rows].astype(np.uint32), self.orders)


def time_range(times: npt.NDArray[np.int64] | None) -> tuple[int | None, int | None]:
    """Smallest and largest event time that is not NULL."""
    if times is None:
        return None, None
    known = times[times != NULL_TIME]
    return (int(known.min()), int(known.max())) if len(known) else (None, None)


def times_of(column: pa.Array) -> npt.NDArray[np.int64]:
    """A timestamp column as microseconds, NULL as `NULL_TIME`."""
    micros = column.view(pa.int64())
    if micros.null_count:
        micros = pc.fill_null(micros, NULL_TIME)
    times: npt.NDArray[np.int64] = micros.to_numpy(zero_copy_only=False)
    return times


SELECTIONS = "s"
MOST_BYTES_READ = 1 << 16


class Bucket:
    """An open, memory-mapped bucket. Arrays are views of the map: cheap to take, gone with the bucket.

    A small one is read as a whole: with thousands of them, as many open files would be more than a process may have.
    The bytes are compared with the checksum once, when it is opened, unless this process wrote them. Who makes other
    files of it has them compared in any case: else a bit that rotted meanwhile would get a checksum that is right.
    """

    def __init__(self, root: Path, meta: BucketMeta, *, is_copied: bool = False) -> None:
        self.meta = meta
        self._path = root / meta.path
        self._identity = _identity(self._path, meta)
        try:
            content = _content(self._path, meta)
        except OSError as error:
            raise BucketCorrupt(
                f"bucket file {meta.path} cannot be read: {error}", where=str(self._path), hint=_RESTORE_HINT
            ) from error
        is_trusted = not is_copied and is_own(self._path, self._identity)
        if not is_trusted and checksum_of(content) != meta.checksum:
            raise _corrupt(self._path, meta, "other bytes than were committed")
        self._batch = pa.ipc.open_file(pa.BufferReader(content)).get_batch(0)
        self._times: dict[str, npt.NDArray[np.int64]] = {}
        self._places = {name: place for place, (name, _) in enumerate(meta.indexes)}

    def is_untouched(self) -> bool:
        """Whether nobody wrote to the file since it was opened: a map shows what is written to it."""
        return _identity(self._path, self.meta) == self._identity

    def column(self, name: str) -> pa.Array:
        return self._batch.column(f"c:{name}")

    def times(self, event_time: str) -> npt.NDArray[np.int64]:
        if event_time not in self._times:
            self._times[event_time] = times_of(self.column(event_time))
        return self._times[event_time]

    def has_index(self, index_id: str) -> bool:
        return index_id in self._places

    def index(self, index_id: str) -> BucketIndex | None:
        place = self._places.get(index_id)
        if place is None:
            return None
        count = self.meta.indexes[place][1]
        codes = self._batch.column(f"k:{place}").to_numpy()[:count]
        rows = self._batch.column(f"r:{place}").to_numpy()[:count]
        has_order = f"o:{place}" in self._batch.schema.names
        orders = self._batch.column(f"o:{place}").to_numpy()[:count] if has_order else None
        return BucketIndex(codes, rows, orders)

    def selection_words(self, word: int) -> U64:
        """The n-th word of each row; the words of a row lie together."""
        if SELECTIONS not in self._batch.schema.names:
            # Before layout 12 they lay word by word.
            return self._batch.column(f"s:{word}").to_numpy()  # type: ignore[no-any-return]
        lines = self._batch.column(SELECTIONS)
        width = lines.type.byte_width // 8
        if len(lines) == 0:
            return np.zeros(0, np.uint64)
        return np.frombuffer(lines.buffers()[1], np.uint64, len(lines) * width).reshape(-1, width)[:, word]


def _content(path: Path, meta: BucketMeta) -> pa.Buffer:
    """The bytes of the bucket; those of a large one are a view of the file, which stays mapped as long as they do."""
    if meta.size_bytes > MOST_BYTES_READ:
        return _range_of(pa.memory_map(str(path)), meta)
    with pa.OSFile(str(path)) as file:
        return _range_of(file, meta)


def _range_of(file: pa.NativeFile, meta: BucketMeta) -> pa.Buffer:
    file.seek(meta.offset or 0)
    return file.read_buffer(meta.size_bytes)


def check_bucket(root: Path, meta: BucketMeta) -> None:
    """Raise unless the file is there with exactly the bytes that were committed."""
    path = root / meta.path
    _identity(path, meta)
    if file_checksum(path, meta.offset or 0, meta.size_bytes) != meta.checksum:
        raise _corrupt(path, meta, "other bytes than were committed")


def _identity(path: Path, meta: BucketMeta) -> FileIdentity:
    """Raise unless the file is there with as many bytes as were committed."""
    try:
        found = FileIdentity.of(path)
    except FileNotFoundError:
        raise BucketMissing(
            f"bucket file {meta.path} is missing: {_lost(meta)}", where=str(path), hint=_RESTORE_HINT
        ) from None
    end = (meta.offset or 0) + meta.size_bytes
    if found.size_bytes < end or (meta.offset is None and found.size_bytes > end):
        raise _corrupt(path, meta, f"{found.size_bytes} bytes, {end} were committed")
    return found


def _corrupt(path: Path, meta: BucketMeta, how: str) -> BucketCorrupt:
    return BucketCorrupt(f"bucket file {meta.path} has {how}: {_lost(meta)}", where=str(path), hint=_RESTORE_HINT)


def _lost(meta: BucketMeta) -> str:
    return f"lost are {meta.rows} rows of store {meta.store}, of batches {meta.lower_batch} to {meta.upper_batch}"
