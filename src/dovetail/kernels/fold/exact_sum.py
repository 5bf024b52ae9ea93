"""Sums without error: the same whatever the order of the values, how they were split, and how often parts were folded.

A number is an integer times a power of two, so a sum of numbers is one, too. It is kept in limbs of 32 bits:

    sum = limb[0] * 2**low_bit + limb[1] * 2**(low_bit + 32) + ...     all limbs in [0, 2**32) but the last, which has
                                                                       the sign and is in [-2**31, 2**31)

Limbs are added up as 64-bit integers and carried over at the end of a fold, so 2**29 rows may be folded at once. What
is no number is counted apart: NaN, +inf, -inf. Sums are rows of a list column, [low_bit, NaNs, +infs, -infs, limbs]:
rows of one fold are equally long, and rows of any length fold together. Decimals are summed as their unscaled integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import njit

from dovetail.kernels.buffers import decimal_words, fixed_values

I64 = npt.NDArray[np.int64]

SUM_TYPE = pa.list_(pa.int64())
HEAD = 4
"""Entries before the limbs: low_bit, and the counts of NaN, +inf and -inf."""
LOWEST_BIT = -1088
"""A multiple of 32 at or below the last bit of every double, 2**-1074."""


@dataclass(frozen=True)
class Limbs:
    """Sums that are added up and not carried over yet: `limbs[group, place]`, and the `others` by group."""

    limbs: I64
    low_bit: int
    others: I64


def fold_values(values: pa.Array, groups: I64, group_count: int, weights: I64 | None = None) -> pa.ListArray:
    """The sum of each group's values, row i of group `groups[i]` taken `weights[i]` times; NULLs add nothing."""
    if weights is not None and int(weights.max(initial=0)) >= 1 << 32:
        single = fold_values(values, np.arange(len(values)), len(values))
        return fold_sums(single, groups, group_count, weights)
    added = add_values(values, groups, group_count, weights)
    return _sums(added.limbs, added.low_bit, added.others)


def add_values(values: pa.Array, groups: I64, group_count: int, weights: I64 | None = None) -> Limbs:
    """See `fold_values`; weights have 32 bits. The last two limbs have room for what is carried over."""
    weights = np.zeros(0, np.int64) if weights is None else weights
    valid = np.asarray(values.is_valid()) if values.null_count else np.ones(len(values), np.bool_)
    kind = values.type
    if pa.types.is_floating(kind):
        return _add_floating(fixed_values(values).astype(np.float64, copy=False), valid, groups, group_count, weights)
    if pa.types.is_decimal(kind):
        low, high = decimal_words(values)
        limbs = np.zeros((group_count, 6), np.int64)
        _add_wide(limbs, low, high, valid, groups, weights)
    else:
        limbs = np.zeros((group_count, 4), np.int64)
        plain = fixed_values(values).astype(np.int64, copy=False)
        if _largest_sum(plain, weights) < 1 << 62:
            totals = _add_small(plain, valid, groups, weights, group_count)
            limbs[:, 0], limbs[:, 1] = totals & 0xFFFFFFFF, totals >> 32
        else:
            _add_integers(limbs, plain, valid, groups, weights)
    return Limbs(limbs, 0, np.zeros((group_count, 3), np.int64))


def fold_sums(sums: pa.ListArray, groups: I64, group_count: int, weights: I64 | None = None) -> pa.ListArray:
    """The sum of each group's sums, each taken `weights[i]` times."""
    offsets, entries = parts_of_sums(sums)
    others = np.zeros((group_count, 3), np.int64)
    low_bit, high_bit = _range_of_sums(offsets, entries)
    if high_bit <= low_bit:
        return _sums(np.zeros((group_count, 1), np.int64), 0, others)
    limbs = np.zeros((group_count, (high_bit - low_bit) // 32 + 4), np.int64)
    if weights is None:
        _add_sums(limbs, others, offsets, entries, groups, low_bit)
    else:
        _add_weighted(limbs, others, offsets, entries, groups, weights, low_bit)
    return _sums(limbs, low_bit, others)


def _largest_sum(values: I64, weights: I64) -> int:
    """No group's sum is larger, nor any on the way to it."""
    if len(values) == 0:
        return 0
    largest = max(-int(values.min()), int(values.max()), 1)
    return largest * len(values) * max(int(weights.max(initial=1)), 1)


def _add_floating(
    values: npt.NDArray[np.float64], valid: npt.NDArray[np.bool_], groups: I64, group_count: int, weights: I64
) -> Limbs:
    others = np.zeros((group_count, 3), np.int64)
    bits = np.ascontiguousarray(values).view(np.uint64)
    lowest, highest = _range_of_floats(bits, valid)
    if highest < 0:
        _count_others(others, bits, valid, groups, weights)
        return Limbs(np.zeros((group_count, 1), np.int64), 0, others)
    # The last bit of a double of exponent field e >= 1 is 2**(e - 1075), of a subnormal one that of e = 1.
    low_limb = (max(lowest, 1) - 1075 - LOWEST_BIT) // 32
    high_limb = (max(highest, 1) - 1075 - LOWEST_BIT) // 32 + 2
    limbs = np.zeros((group_count, high_limb - low_limb + 3), np.int64)
    _add_floats(limbs, others, bits, valid, groups, weights, low_limb)
    return Limbs(limbs, LOWEST_BIT + 32 * low_limb, others)


def _sums(limbs: I64, low_bit: int, others: I64) -> pa.ListArray:
    """Carried over, as short as they can be."""
    _carry(limbs)
    width = limbs.shape[1]
    while width > 1 and _is_short(limbs, width):
        limbs[:, width - 2] -= (limbs[:, width - 1] & 1) << 32
        width -= 1
    rows = np.empty((len(limbs), HEAD + width), np.int64)
    rows[:, 0] = low_bit
    rows[:, 1:HEAD] = others
    rows[:, HEAD:] = limbs[:, :width]
    offsets = np.arange(len(limbs) + 1, dtype=np.int32) * np.int32(HEAD + width)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(rows.reshape(-1)))


def parts_of_sums(sums: pa.ListArray) -> tuple[I64, I64]:
    """Where each row's entries begin, and all entries."""
    offsets = np.asarray(sums.offsets).astype(np.int64)
    return offsets, np.asarray(sums.values)


@njit(cache=True)
def _carry(limbs: Any) -> None:
    for group in range(limbs.shape[0]):
        for place in range(limbs.shape[1] - 1):
            limbs[group, place + 1] += limbs[group, place] >> 32
            limbs[group, place] &= 0xFFFFFFFF


@njit(cache=True)
def _is_short(limbs: Any, width: int) -> bool:
    """Whether the last of `width` limbs only repeats the sign of the one before."""
    for group in range(limbs.shape[0]):
        last, before = limbs[group, width - 1], limbs[group, width - 2]
        if not ((last == 0 and before < 0x80000000) or (last == -1 and before >= 0x80000000)):
            return False
    return True


@njit(cache=True)
def _add_digit(limbs: Any, group: Any, place: Any, digit: Any, weights: Any, row: int) -> None:
    """A digit of 32 bits, not negative."""
    if len(weights):
        product = np.uint64(digit) * np.uint64(weights[row])
        limbs[group, place] += np.int64(product & np.uint64(0xFFFFFFFF))
        limbs[group, place + 1] += np.int64(product >> np.uint64(32))
    else:
        limbs[group, place] += digit


@njit(cache=True)
def _add_last_digit(limbs: Any, group: Any, place: Any, digit: Any, weights: Any, row: int) -> None:
    """A digit of 31 bits and a sign."""
    if len(weights):
        product = digit * weights[row]
        limbs[group, place] += product & 0xFFFFFFFF
        limbs[group, place + 1] += product >> 32
    else:
        limbs[group, place] += digit


@njit(cache=True)
def _add_small(values: Any, valid: Any, groups: Any, weights: Any, group_count: int) -> Any:
    """Sums that stay within 64 bits."""
    totals = np.zeros(group_count, np.int64)
    for row in range(len(values)):
        if valid[row]:
            totals[groups[row]] += values[row] * weights[row] if len(weights) else values[row]
    return totals


@njit(cache=True)
def _add_integers(limbs: Any, values: Any, valid: Any, groups: Any, weights: Any) -> None:
    for row in range(len(values)):
        if valid[row]:
            _add_digit(limbs, groups[row], 0, values[row] & 0xFFFFFFFF, weights, row)
            _add_last_digit(limbs, groups[row], 1, values[row] >> 32, weights, row)


@njit(cache=True)
def _add_wide(limbs: Any, low: Any, high: Any, valid: Any, groups: Any, weights: Any) -> None:
    for row in range(len(low)):
        if valid[row]:
            group = groups[row]
            _add_digit(limbs, group, 0, low[row] & 0xFFFFFFFF, weights, row)
            _add_digit(limbs, group, 1, (low[row] >> 32) & 0xFFFFFFFF, weights, row)
            _add_digit(limbs, group, 2, high[row] & 0xFFFFFFFF, weights, row)
            _add_last_digit(limbs, group, 3, high[row] >> 32, weights, row)


@njit(cache=True)
def _range_of_floats(bits: Any, valid: Any) -> Any:
    """The smallest and the largest exponent field of finite values that are not zero; (_, -1) if there is none."""
    lowest: Any = 2047
    highest: Any = -1
    for row in range(len(bits)):
        field = np.int64((bits[row] >> np.uint64(52)) & np.uint64(0x7FF))
        if valid[row] and field != 2047 and (bits[row] << np.uint64(1)) != np.uint64(0):
            lowest, highest = min(lowest, field), max(highest, field)
    return lowest, highest


@njit(cache=True)
def _count_other(others: Any, bits: Any, group: int, weight: Any) -> None:
    if bits & np.uint64(0xFFFFFFFFFFFFF):
        others[group, 0] += weight
    elif bits >> np.uint64(63):
        others[group, 2] += weight
    else:
        others[group, 1] += weight


@njit(cache=True)
def _count_others(others: Any, bits: Any, valid: Any, groups: Any, weights: Any) -> None:
    for row in range(len(bits)):
        if valid[row] and (bits[row] >> np.uint64(52)) & np.uint64(0x7FF) == np.uint64(0x7FF):
            _count_other(others, bits[row], groups[row], weights[row] if len(weights) else 1)


@njit(cache=True)
def _add_floats(limbs: Any, others: Any, bits: Any, valid: Any, groups: Any, weights: Any, low_limb: int) -> None:
    for row in range(len(bits)):
        if not valid[row]:
            continue
        field = np.int64((bits[row] >> np.uint64(52)) & np.uint64(0x7FF))
        if field == 2047:
            _count_other(others, bits[row], groups[row], weights[row] if len(weights) else 1)
            continue
        mantissa = np.int64(bits[row] & np.uint64(0xFFFFFFFFFFFFF))
        if field:
            mantissa |= np.int64(1) << 52
        else:
            field = np.int64(1)
        if mantissa == 0:
            continue
        if bits[row] >> np.uint64(63):
            mantissa = -mantissa
        position = field - 1075 + 1088
        place, shift = position // 32 - low_limb, position % 32
        # Both halves of the mantissa, moved by less than a limb: the lower one is not negative.
        lower = np.uint64(mantissa & 0xFFFFFFFF) << np.uint64(shift)
        upper = (mantissa >> 32) << shift
        group = groups[row]
        middle = np.int64(lower >> np.uint64(32)) + (upper & 0xFFFFFFFF)
        _add_digit(limbs, group, place, np.int64(lower & np.uint64(0xFFFFFFFF)), weights, row)
        _add_digit(limbs, group, place + 1, middle & 0xFFFFFFFF, weights, row)
        _add_last_digit(limbs, group, place + 2, (upper >> 32) + (middle >> 32), weights, row)


@njit(cache=True)
def _range_of_sums(offsets: Any, entries: Any) -> Any:
    lowest, highest = np.int64(1) << 62, -(np.int64(1) << 62)
    for row in range(len(offsets) - 1):
        low_bit = entries[offsets[row]]
        lowest = min(lowest, low_bit)
        highest = max(highest, low_bit + 32 * (offsets[row + 1] - offsets[row] - 4))
    return lowest, highest


@njit(cache=True)
def _add_sums(limbs: Any, others: Any, offsets: Any, entries: Any, groups: Any, low_bit: int) -> None:
    for row in range(len(offsets) - 1):
        begin, group = offsets[row], groups[row]
        for place in range(3):
            others[group, place] += entries[begin + 1 + place]
        base = (entries[begin] - low_bit) // 32
        for place in range(offsets[row + 1] - begin - 4):
            limbs[group, base + place] += entries[begin + 4 + place]


@njit(cache=True)
def _add_weighted(limbs: Any, others: Any, offsets: Any, entries: Any, groups: Any, weights: Any, low_bit: int) -> None:
    for row in range(len(offsets) - 1):
        begin, group, weight = offsets[row], groups[row], weights[row]
        for place in range(3):
            others[group, place] += entries[begin + 1 + place] * weight
        base = (entries[begin] - low_bit) // 32
        count = offsets[row + 1] - begin - 4
        for place in range(count):
            digit = entries[begin + 4 + place]
            for half in range(2):
                factor = (weight >> (32 * half)) & 0xFFFFFFFF
                at = base + place + half
                if place == count - 1:
                    # Signed: at most 2**31 times 2**32.
                    product = digit * factor
                    limbs[group, at] += product & 0xFFFFFFFF
                    limbs[group, at + 1] += product >> 32
                else:
                    unsigned = np.uint64(digit) * np.uint64(factor)
                    limbs[group, at] += np.int64(unsigned & np.uint64(0xFFFFFFFF))
                    limbs[group, at + 1] += np.int64(unsigned >> np.uint64(32))
