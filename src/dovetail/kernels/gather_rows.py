"""Values of rows that lie in many memory-mapped buckets, fetched in one pass by reference.

A reference is one 64-bit number: the bucket's ordinal in the task's snapshot (high half) and the row in
that bucket (low half). Gathering chunk by chunk would need a sort of the references by bucket; reading
through a table of base addresses needs none. A `Gatherer` holds the arrays it reads, so that their maps live.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import njit

from dovetail.core.errors import ColumnTooLarge
from dovetail.kernels.addresses import address_of_buffer
from dovetail.kernels.pointers import load8, load32, load64

U64 = npt.NDArray[np.uint64]
ROW_BITS = 32
_ROW_MASK = np.uint64((1 << ROW_BITS) - 1)
MAX_GATHERED_BYTES = 1 << 30
"""Offsets of a string array have 31 bits."""
ABSENT = np.uint64((1 << 64) - 1)
"""The reference of a row that is not there: no bucket has so high an ordinal."""


def make_refs(bucket_ordinal: int, rows: npt.NDArray[Any]) -> U64:
    return rows.astype(np.uint64) | np.uint64(bucket_ordinal << ROW_BITS)


def ordinals_of(refs: U64) -> npt.NDArray[np.int64]:
    return (refs >> np.uint64(ROW_BITS)).astype(np.int64)


def rows_of_refs(refs: U64) -> npt.NDArray[np.int64]:
    return (refs & np.uint64((1 << ROW_BITS) - 1)).astype(np.int64)


class Gatherer:
    """One column over all buckets: `columns[ordinal]` of one type, None where a bucket lacks the column.

    A row of such a bucket has NULL there: a join that is kept may be asked for a column that its older members lack.
    """

    def __init__(self, columns: Sequence[pa.Array | None]) -> None:
        self._columns = columns
        present = [column for column in columns if column is not None]
        if not present:
            raise ValueError("no bucket has the column")
        self._is_missing = np.array([column is None for column in columns])
        self._type = present[0].type
        self._width = _fixed_width(self._type)
        self._has_nulls = any(column.null_count for column in present)
        if self._width:
            self._values = np.array([_value_address(column, self._width) for column in columns], np.uint64)
        if self._width and self._has_nulls:
            self._validity = np.array([_validity_address(column) for column in columns], np.uint64)
            self._bit_offsets = np.array([0 if column is None else column.offset for column in columns], np.int64)

    def gather(self, refs: U64) -> pa.Array:
        if self._is_missing.any():
            missing_mask = self._is_missing[ordinals_of(refs)]
            if missing_mask.any():
                idx = np.cumsum(~missing_mask) - 1
                return self._gather_present(refs[~missing_mask]).take(pa.array(idx, mask=missing_mask))
        return self._gather_present(refs)

    def _gather_present(self, refs: U64) -> pa.Array:
        if not self._width:
            return _take_by_bucket(self._columns, refs)
        values = gather_fixed(self._values, refs, self._width)
        validity, null_count = None, 0
        if self._has_nulls:
            valid = _gather_valid(self._validity, self._bit_offsets, refs)
            null_count = len(valid) - int(valid.sum())
            validity = pa.py_buffer(np.packbits(valid, bitorder="little"))
        return pa.Array.from_buffers(self._type, len(refs), [validity, pa.py_buffer(values)], null_count)


def gather_fixed(addresses: U64, refs: U64, width: int) -> npt.NDArray[Any]:
    """Values of `width` bytes from arrays that begin at `addresses[ordinal]`."""
    out: npt.NDArray[Any]
    if width == 8:
        out = _load_u64(addresses, refs)
        return out
    if width == 4:
        out = _load_u32(addresses, refs)
        return out
    out = np.empty((len(refs), width), np.uint8)
    _load_bytes(addresses, refs, out)
    return out


def _fixed_width(arrow_type: pa.DataType) -> int:
    """Bytes per value, or 0 where values have no fixed number of bytes."""
    if pa.types.is_boolean(arrow_type):
        return 0
    if pa.types.is_primitive(arrow_type) or pa.types.is_decimal(arrow_type):
        return int(arrow_type.bit_width // 8)
    return 0


def _value_address(column: pa.Array | None, width: int) -> int:
    if column is None or column.buffers()[1] is None:
        return 0
    return address_of_buffer(column, 1) + int(column.offset) * width


def _validity_address(column: pa.Array | None) -> int:
    if column is None or column.null_count == 0:
        return 0
    return address_of_buffer(column, 0)


def _take_by_bucket(columns: Sequence[pa.Array | None], refs: U64) -> pa.Array:
    """Raises `ColumnTooLarge` before it takes more memory than a column may have."""
    order = np.argsort(refs >> np.uint64(ROW_BITS), kind="stable")
    sorted_refs = refs[order]
    cuts = np.flatnonzero(np.diff(ordinals_of(sorted_refs))) + 1
    wanted = []
    for piece in np.split(sorted_refs, cuts):
        if len(piece):
            column = columns[int(piece[0] >> np.uint64(ROW_BITS))]
            if column is None:
                raise ValueError("a reference into a bucket that lacks the column")
            wanted.append((column, (piece & _ROW_MASK).astype(np.int64)))
    needed = sum(_text_bytes(column, rows) for column, rows in wanted)
    if needed > MAX_GATHERED_BYTES:
        raise ColumnTooLarge(
            f"texts of {len(refs):,} joined rows have {needed:,} bytes",
            hint="select fewer rows, or shorter texts",
            needed_bytes=needed,
        )
    pieces = [column.take(pa.array(rows)) for column, rows in wanted]
    if len(pieces) == 1:
        return pieces[0]
    if not pieces:
        return next(column for column in columns if column is not None).slice(0, 0)
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return pa.concat_arrays(pieces).take(pa.array(back))


def _text_bytes(column: pa.Array, rows: npt.NDArray[np.int64]) -> int:
    """What these rows' texts take together; 0 where values have a fixed size."""
    if not pa.types.is_string(column.type) and not pa.types.is_binary(column.type):
        return 0
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    # Most columns are small however often each row is taken.
    if len(rows) * int(offsets[-1] - offsets[0]) <= MAX_GATHERED_BYTES:
        return 0
    return int((offsets[rows + 1] - offsets[rows]).sum(dtype=np.int64))


@njit(cache=True)
def _load_u64(addresses: Any, refs: Any) -> Any:
    out = np.empty(len(refs), np.uint64)
    for i in range(len(refs)):
        out[i] = load64(addresses[refs[i] >> np.uint64(32)] + (refs[i] & np.uint64(0xFFFFFFFF)) * np.uint64(8))
    return out


@njit(cache=True)
def _load_u32(addresses: Any, refs: Any) -> Any:
    out = np.empty(len(refs), np.uint32)
    for i in range(len(refs)):
        out[i] = load32(addresses[refs[i] >> np.uint64(32)] + (refs[i] & np.uint64(0xFFFFFFFF)) * np.uint64(4))
    return out


@njit(cache=True)
def _load_bytes(addresses: Any, refs: Any, out: Any) -> None:
    width = np.uint64(out.shape[1])
    for i in range(len(refs)):
        base = addresses[refs[i] >> np.uint64(32)] + (refs[i] & np.uint64(0xFFFFFFFF)) * width
        for j in range(out.shape[1]):
            out[i, j] = load8(base + np.uint64(j))


@njit(cache=True)
def _gather_valid(addresses: Any, bit_offsets: Any, refs: Any) -> Any:
    valid = np.ones(len(refs), np.bool_)
    for i in range(len(refs)):
        ordinal = refs[i] >> np.uint64(32)
        if addresses[ordinal] != np.uint64(0):
            bit = (refs[i] & np.uint64(0xFFFFFFFF)) + np.uint64(bit_offsets[ordinal])
            byte = load8(addresses[ordinal] + (bit >> np.uint64(3)))
            valid[i] = (byte >> np.uint8(bit & np.uint64(7))) & np.uint8(1) != 0
    return valid
