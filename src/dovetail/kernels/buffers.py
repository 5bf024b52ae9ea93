"""The values of Arrow arrays as numpy arrays, without a copy; what lies in NULL slots is any value."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

I64 = npt.NDArray[np.int64]


def fixed_values(column: pa.Array) -> npt.NDArray[Any]:
    """Numbers, dates (days), times (microseconds) and booleans (0 and 1)."""
    kind = column.type
    if pa.types.is_boolean(kind):
        return np.asarray(column.cast(pa.uint8()).fill_null(0))
    if pa.types.is_date32(kind):
        column = column.view(pa.int32())
    elif pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        column = column.view(pa.int64())
    values = column.buffers()[1]
    dtype = np.dtype(column.type.to_pandas_dtype())
    if values is None:
        return np.zeros(len(column), dtype)
    return np.frombuffer(values, dtype, len(column), column.offset * dtype.itemsize)


def decimal_words(column: pa.Array) -> tuple[I64, I64]:
    """The low and the high 64 bits of decimals."""
    values = column.buffers()[1]
    if values is None:
        return np.zeros(len(column), np.int64), np.zeros(len(column), np.int64)
    words = np.frombuffer(values, np.int64, 2 * len(column), column.offset * 16)
    return np.ascontiguousarray(words[::2]), np.ascontiguousarray(words[1::2])
