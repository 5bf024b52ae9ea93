"""Columns in fewer bytes, for rows that travel: the same values come out again.

whole numbers, dates, times    as distances from the least of them, in 1, 2 or 4 bytes
decimals of up to 18 digits    as whole numbers
texts                          as places in a list of the different ones, where there are few

What is shipped is compressed by Spark all the same; but a codec that looks for repeated bytes does not see that the
upper bytes of numbers, or the distances between the beginnings of texts, tell nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_WIDTHS = (pa.uint8(), pa.uint16(), pa.uint32())
_TYPES = b"types"
_LEAST = b"least"
_LONG_DIGITS = 18
"""So many digits of a decimal fit in 64 bits."""

_TRIED_TEXTS = 512
_MOST_TEXTS = 1 << 16


def narrow_columns(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """The columns `names` as narrow as they can be, the others as they are; its schema says how to widen them."""
    arrays, least_by_name = list(batch.columns), {}
    for place, name in enumerate(batch.schema.names):
        if name in names and batch.num_rows:
            narrowed = _narrowed(arrays[place])
            if narrowed is not None:
                arrays[place], least_by_name[name] = narrowed
    types = pa.schema([batch.schema.field(name) for name in least_by_name]).serialize().to_pybytes()
    recipe = {_TYPES: types, _LEAST: json.dumps(least_by_name).encode()}
    metadata = {**(batch.schema.metadata or {}), **(recipe if least_by_name else {})}
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names, metadata=metadata)


def widen_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch that was narrowed."""
    metadata = batch.schema.metadata or {}
    if _LEAST not in metadata:
        return batch
    schema = pa.ipc.read_schema(pa.py_buffer(metadata[_TYPES]))
    arrays = list(batch.columns)
    for name, least in json.loads(metadata[_LEAST]).items():
        place = batch.schema.get_field_index(name)
        arrays[place] = _widened(arrays[place], schema.field(name).type, least)
    rest = {key: value for key, value in metadata.items() if key not in (_TYPES, _LEAST)}
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names, metadata=rest)


def _narrowed(column: pa.Array) -> tuple[pa.Array, int] | None:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return _as_places(column)
    longs = _longs(column)
    if longs is None:
        return None
    ends = pc.min_max(longs).as_py()
    least, greatest = ends["min"] or 0, ends["max"] or 0
    for width in _WIDTHS:
        if width.bit_width < column.type.bit_width and greatest - least < 1 << width.bit_width:
            return pc.subtract(longs, pa.scalar(least, pa.int64())).cast(width), least
    return (longs, 0) if pa.types.is_decimal(column.type) else None


def _as_places(column: pa.Array) -> tuple[pa.Array, int] | None:
    # A look at some of them spares a list of all texts where they are as many as rows.
    tried = column.slice(0, _TRIED_TEXTS)
    if 2 * pc.count_distinct(tried).as_py() > len(tried):
        return None
    encoded = column.dictionary_encode()
    if len(encoded.dictionary) > _MOST_TEXTS:
        return None
    width = pa.uint8() if len(encoded.dictionary) <= 1 << 8 else pa.uint16()
    return pa.DictionaryArray.from_arrays(encoded.indices.cast(width), encoded.dictionary), 0


def _longs(column: pa.Array) -> pa.Array | None:
    """The values as 64-bit whole numbers; None where they are none."""
    kind = column.type
    if pa.types.is_signed_integer(kind):
        return column.cast(pa.int64())
    if pa.types.is_date32(kind):
        return column.cast(pa.int32()).cast(pa.int64())
    if pa.types.is_timestamp(kind):
        return column.cast(pa.int64())
    if pa.types.is_decimal128(kind) and kind.precision <= _LONG_DIGITS:
        # Little end first: the lower half of each value is all of it, the upper one repeats its sign.
        whole = pa.concat_arrays([column]) if column.offset else column
        halves = np.frombuffer(whole.buffers()[1], np.int64, 2 * len(whole))
        return pa.array(halves[::2], mask=None if column.null_count == 0 else np.asarray(pc.is_null(column)))
    return None


def _widened(column: pa.Array, kind: pa.DataType, least: int) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        return column.dictionary_decode().cast(kind)
    longs = pc.add(column.cast(pa.int64()), pa.scalar(least, pa.int64()))
    if pa.types.is_decimal128(kind):
        values = np.asarray(longs.fill_null(0))
        halves = np.empty(2 * len(values), np.int64)
        halves[::2], halves[1::2] = values, values >> 63
        decimals = pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(halves)])
        return pc.if_else(pc.is_valid(longs), decimals, pa.scalar(None, kind)) if longs.null_count else decimals
    if pa.types.is_date32(kind):
        return longs.cast(pa.int32()).cast(kind)
    return longs.cast(kind)
