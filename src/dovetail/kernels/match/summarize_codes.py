"""What an index says of its keys at next to no cost, because its codes are sorted and mixed.

    codes  0 ......................... 2**64      sorted: a key group is a range, a frequent key a long run
           |g0|g1|g2| ...        |g127|           mixed: the smallest distinct codes are a random sample of keys

Each function but one searches the codes and reads a few hundred of them, however many there are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from dovetail.kernels.match.hash_keys import spread_codes

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

HEAVY_SHARE = 0.01
_SAMPLES_IN_A_HEAVY_RUN = 4
_TOO_FEW_ROWS = 1024
"""Among fewer rows one percent is a handful, and a frequent key costs nobody anything."""


@dataclass(frozen=True)
class CodeRuns:
    """`counts[i]` entries have code `codes[i]`; codes ascend."""

    codes: U64
    counts: I64


def count_by_group(codes: U64, group_count: int) -> I64:
    """Entries per key group; `codes` ascend and `group_count` is a power of two."""
    bits = group_count.bit_length() - 1
    if bits == 0:
        return np.array([len(codes)], np.int64)
    boundaries = np.arange(1, group_count, dtype=np.uint64) << np.uint64(64 - bits)
    return np.diff(np.searchsorted(codes, boundaries), prepend=0, append=len(codes))


def smallest_codes(codes: U64, count: int) -> U64:
    """The `count` smallest distinct ones of ascending codes; fewer if there are not so many."""
    found: U64 = _smallest_codes(codes, count)
    return found


def smallest_spread_codes(placed_codes: U64, count: int) -> U64:
    """The `count` smallest distinct ones among `spread_codes` of ascending codes of placed keys.

    The only one that reads all codes: they are not sorted by what is wanted of them.
    """
    is_first = np.diff(placed_codes, prepend=~placed_codes[:1]) != 0
    spread = spread_codes(placed_codes[is_first])
    if len(spread) > count:
        spread = np.partition(spread, count - 1)[:count]
    return np.sort(spread)


def heavy_codes(codes: U64, min_share: float = HEAVY_SHARE) -> CodeRuns:
    """Every code that holds at least `min_share` of the ascending codes, counted exactly.

    A run that long contains several of the strided positions wherever it lies, so none is missed.
    """
    if len(codes) < _TOO_FEW_ROWS:
        return CodeRuns(np.zeros(0, np.uint64), np.zeros(0, np.int64))
    shortest = max(math.ceil(min_share * len(codes)), 1)
    stride = max(shortest // _SAMPLES_IN_A_HEAVY_RUN, 1)
    sample = codes[::stride]
    reach = shortest // stride - 1
    candidates = np.unique(sample[reach:][sample[reach:] == sample[: len(sample) - reach]])
    counts = count_codes(codes, candidates)
    is_heavy = counts >= min_share * len(codes)
    return CodeRuns(candidates[is_heavy], counts[is_heavy])


def count_codes(codes: U64, wanted: U64) -> I64:
    """How many of the ascending `codes` equal each of `wanted`."""
    return np.searchsorted(codes, wanted, side="right") - np.searchsorted(codes, wanted)


@njit(cache=True)
def _smallest_codes(codes: Any, count: Any) -> Any:
    """Leap from run to run: a run of a million equal codes costs twenty steps."""
    found = np.empty(count, np.uint64)
    length = len(codes)
    position, filled = 0, 0
    while position < length and filled < count:
        code = codes[position]
        found[filled] = code
        filled += 1
        step = 1
        while position + step < length and codes[position + step] == code:
            position += step
            step += step
        left, right = position + 1, min(position + step, length)
        while left < right:
            middle = (left + right) >> 1
            if codes[middle] == code:
                left = middle + 1
            else:
                right = middle
        position = left
    return found[:filled]
