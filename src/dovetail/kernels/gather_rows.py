"""Values of rows that lie in many memory-mapped buckets, fetched in one pass by reference.

A reference is one 64-bit number: the bucket's ordinal in the task's snapshot (high half) and the row in
that bucket (low half). Gathering chunk by chunk would need a sort of the references by bucket; reading
through a table of base addresses needs none. The caller keeps the buckets mapped while it gathers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

U64 = npt.NDArray[np.uint64]
ROW_BITS = 32
_ROW_MASK = np.uint64((1 << ROW_BITS) - 1)


def make_refs(bucket_ordinal: int, rows: npt.NDArray[Any]) -> U64:
    return rows.astype(np.uint64) | np.uint64(bucket_ordinal << ROW_BITS)


def ordinals_of(refs: U64) -> npt.NDArray[np.int64]:
    return (refs >> np.uint64(ROW_BITS)).astype(np.int64)


def gather_rows(columns: Sequence[pa.Array | None], refs: U64) -> pa.Array:
    """`columns[ordinal]` is the column in that bucket, or None where no reference points.

    All columns have one type and no dictionary.
    """
    present = [column for column in columns if column is not None]
    if not present:
        raise ValueError("nothing to gather from")
    arrow_type = present[0].type
    if len(present) == 1:
        only = next(ordinal for ordinal, column in enumerate(columns) if column is not None)
        return _take_one(columns[only], refs)
    if pa.types.is_boolean(arrow_type) or not _is_fixed_width(arrow_type):
        return _take_by_bucket(columns, refs)
    values = _gather_fixed(_addresses(columns, 1, arrow_type.bit_width), refs, arrow_type.bit_width // 8)
    validity = None
    null_count = 0
    if any(column.null_count for column in present):
        valid = _gather_valid(_addresses(columns, 0, 1), _bit_offsets(columns), refs)
        null_count = len(valid) - int(valid.sum())
        validity = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(arrow_type, len(refs), [validity, pa.py_buffer(values)], null_count)


def gather_numpy(arrays: Sequence[npt.NDArray[Any] | None], refs: U64) -> npt.NDArray[Any]:
    """The same for plain arrays of one 8-byte dtype."""
    present = [array for array in arrays if array is not None]
    if len(present) == 1:
        return present[0][(refs & _ROW_MASK).astype(np.int64)]
    addresses = np.array([0 if array is None else array.ctypes.data for array in arrays], np.uint64)
    return _gather_fixed(addresses, refs, 8).view(present[0].dtype)


def _take_one(column: pa.Array, refs: U64) -> pa.Array:
    rows = (refs & _ROW_MASK).astype(np.int64)
    if column.null_count == 0 and _is_fixed_width(column.type) and not pa.types.is_boolean(column.type):
        width = column.type.bit_width // 8
        source = _fixed_view(column, width)
        return pa.Array.from_buffers(column.type, len(rows), [None, pa.py_buffer(source[rows])], 0)
    return column.take(pa.array(rows))


def _fixed_view(column: pa.Array, width: int) -> npt.NDArray[Any]:
    dtype = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}[width]
    return np.frombuffer(column.buffers()[1], dtype, len(column), column.offset * width)


def _take_by_bucket(columns: Sequence[pa.Array | None], refs: U64) -> pa.Array:
    order = np.argsort(refs >> np.uint64(ROW_BITS), kind="stable")
    sorted_refs = refs[order]
    ordinals = ordinals_of(sorted_refs)
    cuts = np.flatnonzero(np.diff(ordinals)) + 1
    pieces = []
    for piece in np.split(sorted_refs, cuts):
        if len(piece):
            column = columns[int(piece[0] >> np.uint64(ROW_BITS))]
            if column is None:
                raise ValueError("a reference into a bucket that was not given")
            pieces.append(column.take(pa.array((piece & _ROW_MASK).astype(np.int64))))
    if not pieces:
        return next(column for column in columns if column is not None).slice(0, 0)
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return pa.concat_arrays(pieces).take(pa.array(back))


def _is_fixed_width(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(arrow_type) or pa.types.is_decimal(arrow_type))


def _addresses(columns: Sequence[pa.Array | None], buffer: int, bit_width: int) -> U64:
    addresses = np.zeros(len(columns), np.uint64)
    for ordinal, column in enumerate(columns):
        if column is None or column.buffers()[buffer] is None:
            continue
        base = column.buffers()[buffer].address
        addresses[ordinal] = base if buffer == 0 else base + column.offset * bit_width // 8
    return addresses


def _bit_offsets(columns: Sequence[pa.Array | None]) -> npt.NDArray[np.int64]:
    return np.array([0 if column is None else column.offset for column in columns], np.int64)


def _gather_fixed(addresses: U64, refs: U64, width: int) -> npt.NDArray[Any]:
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


def _pointer_load(bits: int, result: Any) -> Any:
    @intrinsic
    def load(_typing_context: Any, address: Any) -> Any:  # noqa: ARG001 (numba passes arguments by name)
        def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return builder.load(builder.inttoptr(args[0], ir.IntType(bits).as_pointer()))

        return result(types.uint64), codegen

    return load


_load8 = _pointer_load(8, types.uint8)
_load32 = _pointer_load(32, types.uint32)
_load64 = _pointer_load(64, types.uint64)


@njit(cache=True)
def _load_u64(addresses: Any, refs: Any) -> Any:
    out = np.empty(len(refs), np.uint64)
    for i in range(len(refs)):
        out[i] = _load64(addresses[refs[i] >> np.uint64(32)] + (refs[i] & np.uint64(0xFFFFFFFF)) * np.uint64(8))
    return out


@njit(cache=True)
def _load_u32(addresses: Any, refs: Any) -> Any:
    out = np.empty(len(refs), np.uint32)
    for i in range(len(refs)):
        out[i] = _load32(addresses[refs[i] >> np.uint64(32)] + (refs[i] & np.uint64(0xFFFFFFFF)) * np.uint64(4))
    return out


@njit(cache=True)
def _load_bytes(addresses: Any, refs: Any, out: Any) -> None:
    width = np.uint64(out.shape[1])
    for i in range(len(refs)):
        base = addresses[refs[i] >> np.uint64(32)] + (refs[i] & np.uint64(0xFFFFFFFF)) * width
        for j in range(out.shape[1]):
            out[i, j] = _load8(base + np.uint64(j))


@njit(cache=True)
def _gather_valid(addresses: Any, bit_offsets: Any, refs: Any) -> Any:
    valid = np.ones(len(refs), np.bool_)
    for i in range(len(refs)):
        ordinal = refs[i] >> np.uint64(32)
        if addresses[ordinal] != np.uint64(0):
            bit = (refs[i] & np.uint64(0xFFFFFFFF)) + np.uint64(bit_offsets[ordinal])
            byte = _load8(addresses[ordinal] + (bit >> np.uint64(3)))
            valid[i] = (byte >> np.uint8(bit & np.uint64(7))) & np.uint8(1) != 0
    return valid
