"""How large values may become: what a function would give is estimated before memory is taken for it.

one value       at most `MAX_VALUE_BYTES`: more is an error of whoever asks
one column      at most `WORK_BYTES` while it is worked on: more rows than that are taken in pieces, of which no more
                are begun than there is time for (`work_limit`)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.core.errors import ColumnTooLarge, EvaluationError
from dovetail.kernels.evaluate.rows import Mask, Rows, Value, valid_mask
from dovetail.kernels.evaluate.work_limit import WorkClock

I64 = npt.NDArray[np.int64]
T = TypeVar("T")

MAX_VALUE_BYTES = 16 << 20
WORK_BYTES = MAX_VALUE_BYTES
"""Few: memory that a process did not have before costs more to get than the values cost to make."""
MAX_WIDE_BYTES = 1 << 30
"""Of a column that is put together from pieces: offsets of a string array have 31 bits."""


def check_sizes(name: str, bytes_by_row: I64) -> None:
    """Refuse what a function would give: `bytes_by_row` of its values, or of one that all rows share."""
    largest = int(bytes_by_row.max(initial=0))
    if largest > MAX_VALUE_BYTES:
        raise EvaluationError(
            f"{name} gives a value of {largest:,} bytes; a value has at most {MAX_VALUE_BYTES:,}",
            hint="ask for a shorter text",
        )
    # In floating point: so many large values that their sum wraps around must not look small.
    needed = float(bytes_by_row.sum(dtype=np.float64))
    if needed > WORK_BYTES:
        raise ColumnTooLarge(
            f"{name} gives {needed:,.0f} bytes for {len(bytes_by_row):,} rows",
            hint="ask for shorter texts, or for fewer rows",
            needed_bytes=int(needed),
        )


def byte_lengths(value: Value, rows: Rows) -> I64:
    """Of texts, by row; a NULL has none."""
    return _numbers(pc.binary_length(value), rows)


def text_lengths(value: Value, rows: Rows) -> I64:
    """In code points, by row; a NULL has none."""
    return _numbers(pc.utf8_length(value), rows)


def whole_numbers(value: Value, rows: Rows) -> I64:
    """By row; a NULL counts as 0."""
    return _numbers(value, rows)


def all_there(values: Sequence[Value], rows: Rows) -> Mask:
    """Where none of the values is NULL: only there a function is asked."""
    mask = np.ones(rows.length, np.bool_)
    for value in values:
        mask &= valid_mask(value, rows.length)
    return mask


def _numbers(value: Value, rows: Rows) -> I64:
    if isinstance(value, pa.Scalar):
        return np.full(rows.length, value.as_py() or 0, np.int64)
    filled = pc.fill_null(value, 0) if value.null_count else value
    return np.asarray(filled, dtype=np.int64)


def in_smaller_pieces(
    function: Callable[[Rows], T], rows: Rows, join: Callable[[Sequence[T]], T], *, most_bytes: int | None
) -> T:
    """The function over all rows; if some column on the way would be too large, over a few at a time.

    Where what comes out is as wide itself, rows with more than `most_bytes` are the caller's matter.
    """
    clock = WorkClock()

    def over(some: Rows) -> T:
        try:
            return function(some)
        except ColumnTooLarge as error:
            if some.length == 1 or (most_bytes is not None and error.needed_bytes > most_bytes):
                raise
            pieces = min(max(2 * error.needed_bytes // WORK_BYTES, 2), some.length)
        found = []
        for part in some.pieces(-(-some.length // pieces)):
            clock.check()
            found.append(over(part))
        return join(found)

    return over(rows)


def joined_arrays(arrays: Sequence[pa.Array]) -> pa.Array:
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
