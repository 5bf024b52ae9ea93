"""Exact sums as values of SQL types: the nearest double, or the integer itself where its type can hold it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import njit

from dovetail.core.errors import EvaluationError
from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.fold.exact_sum import parts_of_sums
from dovetail.query.types import SqlType

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def doubles_of(sums: pa.ListArray) -> npt.NDArray[np.float64]:
    """Each sum as the nearest double, ties to even; beyond all doubles infinite."""
    doubles: npt.NDArray[np.float64] = _to_doubles(*parts_of_sums(sums))
    return doubles


def integers_of(sums: pa.ListArray) -> list[int]:
    """Sums of integers, or of unscaled decimals, of any size."""
    return [sum(limb << (32 * place) for place, limb in enumerate(row[4:])) << row[0] for row in sums.to_pylist()]


def bigints_of(sums: pa.ListArray, null_mask: Mask) -> pa.Array:
    """Sums of integers; one that no bigint can hold is Spark's overflow."""
    low, high, is_wide = _to_words(*parts_of_sums(sums))
    if ((is_wide | (high != low >> 63)) & ~null_mask).any():
        raise EvaluationError("SUM: bigint overflow", hint="sum a decimal: SUM(CAST(x AS DECIMAL(38, 0)))")
    return pa.array(low, mask=null_mask)


def decimals_of(sums: pa.ListArray, kind: SqlType, null_mask: Mask) -> pa.Array:
    """Sums of decimals of the scale of `kind`; one that is too long for it is Spark's overflow."""
    low, high, is_wide = _to_words(*parts_of_sums(sums))
    limit = 10**kind.precision
    is_long = _is_beyond(low, high, np.uint64(limit & (1 << 64) - 1), np.uint64(limit >> 64))
    if ((is_wide | is_long) & ~null_mask).any():
        raise EvaluationError(
            f"SUM: {kind} overflow",
            hint="sum fewer digits: cast the argument to a decimal of smaller precision and scale",
        )
    words = np.stack([low, high], axis=1)
    words[null_mask] = 0
    validity = pa.py_buffer(np.packbits(~null_mask, bitorder="little")) if null_mask.any() else None
    return pa.Array.from_buffers(arrow_type(kind), len(low), [validity, pa.py_buffer(np.ascontiguousarray(words))])


def averages_of(sums: pa.ListArray, counts: I64, kind: SqlType, scale: int, null_mask: Mask) -> pa.Array:
    """`sums` of decimals of this scale over their counts, rounded half up to the scale of `kind`."""
    factor = 10 ** (kind.scale - scale)
    low, high, is_wide = _to_words(*parts_of_sums(sums))
    safe_counts = np.where(null_mask, 1, counts)
    most = (2**62) // factor
    if not is_wide.any() and (high == low >> 63).all() and (np.abs(low) < most).all() and counts.max(initial=0) < 2**61:
        quotients, rests = np.divmod(np.abs(low) * factor, safe_counts)
        quotients += 2 * rests >= safe_counts
        found = [int(value) for value in np.where(low < 0, -quotients, quotients)]
    else:
        found = [
            _half_up(total * factor, int(count)) for total, count in zip(integers_of(sums), safe_counts, strict=True)
        ]
    if any(abs(value) >= 10**kind.precision for value, is_null in zip(found, null_mask, strict=True) if not is_null):
        raise EvaluationError(f"AVG: {kind} overflow")
    words = np.array([(value & (1 << 64) - 1, value >> 64 & (1 << 64) - 1) for value in found], np.uint64).reshape(
        -1, 2
    )
    validity = pa.py_buffer(np.packbits(~null_mask, bitorder="little")) if null_mask.any() else None
    return pa.Array.from_buffers(arrow_type(kind), len(found), [validity, pa.py_buffer(words)])


def _half_up(dividend: int, divisor: int) -> int:
    quotient, rest = divmod(abs(dividend), divisor)
    quotient += 2 * rest >= divisor
    return -quotient if dividend < 0 else quotient


@njit(cache=True)
def _magnitude(digits: Any, offsets: Any, entries: Any, row: int) -> tuple[bool, int]:
    """Fill `digits` with the absolute value of a sum; whether it is negative, and the place of its highest digit."""
    begin, count = offsets[row], offsets[row + 1] - offsets[row] - 4
    is_negative = entries[begin + 3 + count] < 0
    carry = np.int64(0)
    highest = -1
    for place in range(count):
        digit = entries[begin + 4 + place]
        carry += -digit if is_negative else digit
        digits[place] = np.uint64(carry & 0xFFFFFFFF)
        carry >>= 32
        if digits[place]:
            highest = place
    return is_negative, highest


@njit(cache=True)
def _bits_at(digits: Any, low: int, count: int) -> Any:
    """`count` (at most 53) bits of the digits from bit `low` on, as a number."""
    found = np.uint64(0)
    for place in range(count):
        bit = low + place
        found |= ((digits[bit >> 5] >> np.uint64(bit & 31)) & np.uint64(1)) << np.uint64(place)
    return found


@njit(cache=True)
def _is_any_below(digits: Any, bit: int) -> bool:
    for place in range(bit >> 5):
        if digits[place]:
            return True
    return bool(digits[bit >> 5] & ((np.uint64(1) << np.uint64(bit & 31)) - np.uint64(1)))


@njit(cache=True)
def _to_doubles(offsets: Any, entries: Any) -> Any:
    rows = len(offsets) - 1
    doubles = np.zeros(rows, np.float64)
    longest = 0
    for row in range(rows):
        longest = max(longest, offsets[row + 1] - offsets[row] - 4)
    digits = np.zeros(longest + 2, np.uint64)
    for row in range(rows):
        begin = offsets[row]
        nan, positive, negative = entries[begin + 1], entries[begin + 2], entries[begin + 3]
        if nan or (positive and negative):
            doubles[row] = np.nan
        elif positive or negative:
            doubles[row] = np.inf if positive else -np.inf
        else:
            doubles[row] = _nearest(digits, offsets, entries, row)
    return doubles


@njit(cache=True)
def _nearest(digits: Any, offsets: Any, entries: Any, row: int) -> float:
    is_negative, highest = _magnitude(digits, offsets, entries, row)
    if highest < 0:
        return 0.0
    length = 32 * highest
    top = digits[highest]
    while top:
        top >>= np.uint64(1)
        length += 1
    low_bit = entries[offsets[row]]
    # No double has a bit below 2**-1074.
    kept = min(53, length + low_bit + 1074)
    cut = max(length - kept, 0)
    mantissa = _bits_at(digits, cut, length - cut)
    if cut > 0:
        is_half = _bits_at(digits, cut - 1, 1) == np.uint64(1)
        if is_half and (_is_any_below(digits, cut - 1) or mantissa & np.uint64(1)):
            mantissa += np.uint64(1)
    found = math.ldexp(float(mantissa), low_bit + cut)
    return -found if is_negative else found


@njit(cache=True)
def _to_words(offsets: Any, entries: Any) -> Any:
    """128 bits of each sum, low and high word, and which sums need more."""
    rows = len(offsets) - 1
    low, high = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    is_wide = np.zeros(rows, np.bool_)
    for row in range(rows):
        begin, count = offsets[row], offsets[row + 1] - offsets[row] - 4
        last = entries[begin + 3 + count]
        sign = np.int64(-1) if last < 0 else np.int64(0)
        words = np.zeros(4, np.int64)
        for place in range(4):
            words[place] = (entries[begin + 4 + place] if place < count else sign) & 0xFFFFFFFF
        low[row] = words[0] | (words[1] << 32)
        high[row] = words[2] | (words[3] << 32)
        # Beyond 128 bits only the sign may follow.
        is_wide[row] = count > 4 and (high[row] >> 63) != sign
        for place in range(4, count - 1):
            is_wide[row] |= entries[begin + 4 + place] != sign & 0xFFFFFFFF
        is_wide[row] |= count > 4 and last != sign
    return low, high, is_wide


@njit(cache=True)
def _is_beyond(low: Any, high: Any, limit_low: Any, limit_high: Any) -> Any:
    """Where the absolute value of 128 bits is not below a limit."""
    found = np.zeros(len(low), np.bool_)
    for row in range(len(low)):
        one, other = np.uint64(low[row]), np.uint64(high[row])
        if high[row] < 0:
            one = ~one + np.uint64(1)
            other = ~other + np.uint64(1 if one == np.uint64(0) else 0)
        found[row] = other > limit_high or (other == limit_high and one >= limit_low)
    return found
