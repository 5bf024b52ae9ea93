"""Exact sums of any run of neighbours by one subtraction: of the sums before its end and before its begin (D4).

Limbs of exact sums are integers, so their differences are exact; what a run carries over from limb to limb is settled
when it is asked for. Limbs that are 0 in all values are not kept: integers that fit in 32 bits need one or two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import njit

from dovetail.kernels.buffers import fixed_values
from dovetail.kernels.fold.exact_sum import HEAD, add_values
from dovetail.kernels.fold.fold_runs import Runs

I64 = npt.NDArray[np.int64]
_SMALL = 1 << 32


@dataclass(frozen=True)
class PrefixSums:
    """`limbs[i]` are those of the sum of all values before i, `others[i]` the counts of what is no number."""

    limbs: I64
    others: I64 | None
    low_bit: int


def prefix_sums(values: pa.Array) -> PrefixSums:
    """Of values that are not NULL, fewer than 2**30."""
    if pa.types.is_integer(values.type):
        plain = fixed_values(values).astype(np.int64, copy=False)
        if len(plain) == 0 or max(-int(plain.min()), int(plain.max())) < _SMALL:
            # No sum of so few such values leaves 64 bits: they are one limb.
            sums = np.zeros((len(plain) + 1, 1), np.int64)
            np.cumsum(plain, out=sums[1:, 0])
            return PrefixSums(sums, None, 0)
    added = add_values(values, np.arange(len(values)), len(values))
    low, high = _used_places(added.limbs)
    others = _summed(added.others, 0, 3) if added.others.any() else None
    return PrefixSums(_summed(added.limbs, low, high), others, added.low_bit + 32 * low)


def sums_of_runs(prefix: PrefixSums, runs: Runs) -> pa.ListArray:
    """The sum of each run, as `exact_sum` writes sums."""
    width = HEAD + prefix.limbs.shape[1] + 1
    entries = _entries_of_runs(prefix.limbs, runs.begins, runs.ends, prefix.low_bit, width)
    if prefix.others is not None:
        entries[:, 1:HEAD] = prefix.others[runs.ends] - prefix.others[runs.begins]
    offsets = np.arange(len(entries) + 1, dtype=np.int32) * np.int32(width)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(entries.reshape(-1)))


@njit(cache=True)
def _used_places(limbs: Any) -> tuple[int, int]:
    """From the first to behind the last limb that is not 0 in all rows."""
    low, high = limbs.shape[1] - 1, 1
    for row in range(limbs.shape[0]):
        for place in range(limbs.shape[1]):
            if limbs[row, place] != 0:
                low, high = min(low, place), max(high, place + 1)
    return min(low, high - 1), high


@njit(cache=True)
def _summed(columns: Any, low: int, high: int) -> Any:
    sums = np.zeros((columns.shape[0] + 1, high - low), np.int64)
    for row in range(columns.shape[0]):
        for place in range(high - low):
            sums[row + 1, place] = sums[row, place] + columns[row, low + place]
    return sums


@njit(cache=True)
def _entries_of_runs(limbs: Any, begins: Any, ends: Any, low_bit: int, width: int) -> Any:
    entries = np.zeros((len(begins), width), np.int64)
    for run in range(len(begins)):
        entries[run, 0] = low_bit
        carry = np.int64(0)
        for place in range(limbs.shape[1]):
            carry += limbs[ends[run], place] - limbs[begins[run], place]
            entries[run, 4 + place] = carry & 0xFFFFFFFF
            carry >>= 32
        entries[run, 4 + limbs.shape[1]] = carry
    return entries
