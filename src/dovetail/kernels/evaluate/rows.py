"""What a kernel works on: the rows of one call, and values that are arrays or single scalars."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.core.errors import EvaluationError
from dovetail.kernels.arrow_types import arrow_type
from dovetail.query.expression import Column

Value: TypeAlias = Any  # pa.Array or pa.Scalar; pyarrow ships no types


Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
Numbers: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class Rows:
    """The columns of one call of `evaluate`, read on demand and once."""

    __slots__ = ("_column_by_name", "_column_of", "_row_idx", "length", "timezone")

    def __init__(
        self,
        column_of: Callable[[Column], pa.Array],
        length: int,
        timezone: str,
        row_idx: pa.Array | None = None,
    ) -> None:
        self._column_of = column_of
        self._row_idx = row_idx
        self._column_by_name: dict[Column, pa.Array] = {}
        self.length = length
        self.timezone = timezone

    def column(self, column: Column) -> pa.Array:
        found = self._column_by_name.get(column)
        if found is None:
            found = self._read(column)
            self._column_by_name[column] = found
        return found

    def _read(self, column: Column) -> pa.Array:
        array = self._column_of(column)
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if self._row_idx is not None:
            return array.take(self._row_idx)
        wanted = arrow_type(column.type, self.timezone)
        # Large strings, dictionaries and other zone labels are the same values in another coat.
        return array if array.type == wanted else array.cast(wanted)

    def where(self, mask: Mask) -> Rows:
        """Only the rows under `mask`."""
        row_idx = pa.array(np.flatnonzero(mask))
        return Rows(self.column, len(row_idx), self.timezone, row_idx)

    def pieces(self, size: int) -> Iterator[Rows]:
        """All rows in order, so many at a time."""
        for lower in range(0, self.length, size):
            length = min(size, self.length - lower)
            yield Rows(lambda column, lower=lower, n=length: self.column(column).slice(lower, n), length, self.timezone)  # type: ignore[misc]


Kernel = Callable[[Rows], Value]


def as_array(value: Value, length: int) -> pa.Array:
    if isinstance(value, pa.Scalar):
        return pa.repeat(value, length)
    return value.combine_chunks() if isinstance(value, pa.ChunkedArray) else value


def spread(value: Value, mask: Mask) -> pa.Array:
    """Values of the rows under `mask` put back in place; NULL elsewhere."""
    count = int(np.count_nonzero(mask))
    positions = np.cumsum(mask) - 1
    return as_array(value, count).take(pa.array(positions, mask=~mask))


def true_mask(value: Value, length: int) -> Mask:
    """Where a boolean value is true, not NULL."""
    if isinstance(value, pa.Scalar):
        return np.full(length, value.as_py() is True)
    if value.null_count:
        value = pc.fill_null(value, False)
    mask: Mask = value.to_numpy(zero_copy_only=False)
    return mask


def valid_mask(value: Value, length: int) -> Mask:
    if isinstance(value, pa.Scalar):
        return np.full(length, value.is_valid)
    if not value.null_count:
        return np.ones(length, dtype=bool)
    mask: Mask = pc.is_valid(value).to_numpy(zero_copy_only=False)
    return mask


_NUMPY_BY_TYPE: dict[pa.DataType, np.dtype[Any]] = {
    pa.int8(): np.dtype(np.int8),
    pa.int16(): np.dtype(np.int16),
    pa.int32(): np.dtype(np.int32),
    pa.int64(): np.dtype(np.int64),
    pa.float32(): np.dtype(np.float32),
    pa.float64(): np.dtype(np.float64),
    pa.date32(): np.dtype(np.int32),
    pa.duration("us"): np.dtype(np.int64),
}


def numpy_type(data_type: pa.DataType) -> np.dtype[Any] | None:
    """The dtype of an Arrow type's value buffer, or None where it has no plain one."""
    if pa.types.is_timestamp(data_type):
        return np.dtype(np.int64)
    return _NUMPY_BY_TYPE.get(data_type)


def numbers(array: pa.Array) -> Numbers:
    """The value buffer of a fixed-width array without a copy; slots of NULLs hold anything."""
    dtype = numpy_type(array.type)
    assert dtype is not None, array.type
    buffer = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return np.zeros(len(array), dtype)
    return np.frombuffer(buffer, dtype, count=len(array), offset=array.offset * dtype.itemsize)


def from_numbers(values: Numbers, data_type: pa.DataType, valid: Mask | None) -> pa.Array:
    """An array of `data_type` over `values`, NULL where not `valid`."""
    plain = pa.array(values, mask=None if valid is None or valid.all() else ~valid)
    return plain if plain.type == data_type else plain.view(data_type)


def fail(what: str, hint: str | None = None) -> EvaluationError:
    return EvaluationError(what, hint=hint)


def by_row(function: Callable[..., object], args: list[Value], rows: Rows, data_type: pa.DataType) -> Value:
    """`function` on each row whose arguments are all there, for what no array kernel does exactly."""
    if all(isinstance(arg, pa.Scalar) for arg in args):
        values = [arg.as_py() for arg in args]
        return pa.scalar(None if None in values else function(*values), data_type)
    columns = [as_array(arg, rows.length).to_pylist() for arg in args]
    return pa.array((None if None in row else function(*row) for row in zip(*columns, strict=True)), data_type)
