"""Values as 64-bit integers that ascend as SQL orders the values: what ordered indexes are sorted and searched by.

    42 -> 42      DATE '1970-01-03' -> 2      1.25 (two digits after the point) -> 125      NaN -> above +infinity

Integers, dates, times, intervals, decimals of up to 18 digits and floating point numbers keep their order exactly:
-0.0 is 0.0, and NaN is one number above all others, as in Spark. Of strings only the first eight bytes count and of
longer decimals the leading bits, so that different values may become one (`is_exactly_ordered` tells).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from dovetail.kernels.match.sort_codes import sort_orders
from dovetail.query.order_kinds import MAX_EXACT_DIGITS

I64 = npt.NDArray[np.int64]
LOWEST = np.iinfo(np.int64).min
HIGHEST = np.iinfo(np.int64).max
_SHIFT_ROUNDING = 4.0
"""A difference, the sum that stands for it and the comparison are each rounded once; one more to be sure."""


@dataclass(frozen=True)
class OrderValues:
    """`valid_mask` is None when no value is NULL; the value of a NULL says nothing."""

    values: I64
    valid_mask: npt.NDArray[np.bool_] | None


def order_values(column: pa.Array) -> OrderValues:
    """See the module's head."""
    valid_mask = np.asarray(pc.is_valid(column)) if column.null_count else None
    return OrderValues(_values_of(column), valid_mask)


@dataclass(frozen=True)
class End:
    """A range's end in each row: `column` plus `offset` in order values.

    An offset that is a float is added to a number, and stands for a difference that SQL rounds.
    """

    column: pa.Array
    offset: int | float = 0
    is_inclusive: bool = True


@dataclass(frozen=True)
class RowRanges:
    """By row, the order values that lie within, both ends included; none do where `lower` is above `upper`."""

    lower: I64
    upper: I64

    @cached_property
    def ascending(self) -> I64:
        """Rows in which something lies within, in the order of their lower ends."""
        idx = np.flatnonzero(self.lower <= self.upper)
        ordered: I64 = idx[sort_orders(self.lower[idx])]
        return ordered


def row_ranges(lower: End | None, upper: End | None, length: int) -> RowRanges:
    """From one end or both. NULL compares to nothing; a sum beyond all order values has all or none on one side."""
    lowers, uppers = np.full(length, LOWEST, np.int64), np.full(length, HIGHEST, np.int64)
    is_nowhere = np.zeros(length, np.bool_)
    if lower is not None:
        is_nowhere |= _is_null(lower.column)
        if _is_shifted_float(lower):
            shifted = _shifted(lower, -1)
            # A difference from NaN is NaN, which is above every bound.
            lowers = np.where(np.isnan(shifted), LOWEST, _float_order(shifted))
        else:
            lowers, is_beyond = saturating_sum(_values_of(lower.column), int(lower.offset) + (not lower.is_inclusive))
            is_nowhere |= is_beyond & (lowers == HIGHEST)
    if upper is not None:
        is_nowhere |= _is_null(upper.column)
        if _is_shifted_float(upper):
            shifted = _shifted(upper, 1)
            uppers = np.where(np.isnan(shifted), HIGHEST, _float_order(shifted))
        else:
            uppers, is_beyond = saturating_sum(_values_of(upper.column), int(upper.offset) - (not upper.is_inclusive))
            is_nowhere |= is_beyond & (uppers == LOWEST)
    return RowRanges(np.where(is_nowhere, HIGHEST, lowers), np.where(is_nowhere, LOWEST, uppers))


def loosest(ranges: Sequence[RowRanges]) -> RowRanges:
    """By row, what lies within one of them, and what lies between."""
    if len(ranges) == 1:
        return ranges[0]
    return RowRanges(
        np.minimum.reduce([each.lower for each in ranges]), np.maximum.reduce([each.upper for each in ranges])
    )


def _is_null(column: pa.Array) -> Any:
    return np.asarray(pc.is_null(column)) if column.null_count else False


def _is_shifted_float(end: End) -> bool:
    return isinstance(end.offset, float)


def saturating_sum(values: I64, offset: int) -> tuple[I64, Any]:
    """Sums that stay at the ends of all order values instead of wrapping around, and which of them did."""
    if offset == 0:
        return values, False
    if offset > 0:
        is_beyond = values > HIGHEST - offset
        return np.where(is_beyond, HIGHEST, values + np.int64(offset)), is_beyond
    is_beyond = values < LOWEST - offset
    return np.where(is_beyond, LOWEST, values + np.int64(offset)), is_beyond


def _shifted(end: End, direction: int) -> npt.NDArray[np.float64]:
    """The sums, moved outwards by as much as a rounded difference may be from what it stands for."""
    values, offset = np.asarray(end.column.cast(pa.float64()).fill_null(0.0)), float(end.offset)
    precision = np.finfo(np.float32 if pa.types.is_float32(end.column.type) else np.float64)
    with np.errstate(all="ignore"):
        slack = _SHIFT_ROUNDING * float(precision.eps) * (np.abs(values) + abs(offset)) + float(precision.tiny)
        return values + offset + np.where(np.isfinite(slack), direction * slack, 0.0)


def _values_of(column: pa.Array) -> I64:
    kind = column.type
    if pa.types.is_boolean(kind):
        return np.asarray(column.cast(pa.uint8()).fill_null(0)).astype(np.int64)
    if pa.types.is_floating(kind):
        return _float_order(np.asarray(column.cast(pa.float64()).fill_null(0.0)))
    if pa.types.is_decimal(kind):
        return _decimal_order(column)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _string_order(column.cast(pa.large_string()))
    if pa.types.is_date32(kind):
        column = column.view(pa.int32())
    elif pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        column = column.view(pa.int64())
    values: I64 = np.asarray(column.fill_null(0)).astype(np.int64, copy=False)
    return values


def _float_order(values: npt.NDArray[np.float64]) -> I64:
    """The bits of a positive number ascend with it; those of a negative one descend."""
    with np.errstate(all="ignore"):
        bits = np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64)
    ordered: I64 = np.where(bits < 0, bits ^ HIGHEST, bits)
    return ordered


def _decimal_order(column: pa.Array) -> I64:
    words = np.frombuffer(column.buffers()[1], np.int64)[2 * column.offset : 2 * (column.offset + len(column))]
    low, high = words[::2], words[1::2]
    if column.type.precision <= MAX_EXACT_DIGITS:
        return np.ascontiguousarray(low)
    kept_bits = 63
    shift = np.int64((10**column.type.precision).bit_length() - kept_bits)
    return (high << (np.int64(64) - shift)) | (low.view(np.uint64) >> np.uint64(shift)).view(np.int64)


def _string_order(column: pa.Array) -> I64:
    _, offsets_buffer, values_buffer = column.buffers()
    if offsets_buffer is None or len(column) == 0:
        return np.zeros(len(column), np.int64)
    offsets = np.frombuffer(offsets_buffer, np.int64)[column.offset : column.offset + len(column) + 1]
    values = np.frombuffer(values_buffer, np.uint8) if values_buffer is not None else np.zeros(0, np.uint8)
    return _prefixes(values, offsets).view(np.int64) ^ np.int64(LOWEST)  # type: ignore[no-any-return]


@njit(cache=True)
def _prefixes(values: Any, offsets: Any) -> Any:
    """The first eight bytes of each string, missing ones as zero, the first byte weighing most."""
    words = np.empty(len(offsets) - 1, np.uint64)
    for i in range(len(words)):
        word = np.uint64(0)
        for place in range(8):
            position = offsets[i] + place
            byte = np.uint64(values[position]) if position < offsets[i + 1] else np.uint64(0)
            word = (word << np.uint64(8)) | byte
        words[i] = word
    return words
