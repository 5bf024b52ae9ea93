"""Where the partners of probe rows lie among stored codes: both ascend, so one forward pass finds them.

The cost follows probe rows times log(gap), not stored rows: a store a hundred times larger than the batch stays cheap.
Whether a row matches is as unpredictable as a coin, and a mispredicted branch costs more than all else here. So loops
write every candidate and advance by 0 or 1 instead of branching. Positions are unsigned: for signed ones the compiler
would add code for negative ones to every access.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
_MERGE_UP_TO = 8


def code_runs(codes: U64, probe_idx: I64, stored_codes: U64) -> tuple[I64, I64, I64]:
    """The probe rows (ascending by `codes`) that have partners, where their runs begin, and where they end."""
    probe_idx, first, ends = _runs(codes, probe_idx, stored_codes, _positions(codes, stored_codes))
    begin = first.astype(np.int64)
    return probe_idx, begin, begin + np.diff(ends, prepend=0)


def _positions(codes: U64, stored_codes: U64) -> U64:
    """For each probe code the first stored one that is not below it."""
    is_much_longer = len(stored_codes) >= _MERGE_UP_TO * len(codes)
    positions = _searched_positions if is_much_longer else _merged_positions
    return positions(codes, stored_codes)  # type: ignore[no-any-return]


@njit(cache=True)
def _merged_positions(probe_codes: Any, stored_codes: Any) -> Any:
    """For each probe code the first stored one that is not below it, found by stepping through both."""
    first = np.empty(len(probe_codes) + 1, np.uint64)
    i, position = np.uint64(0), np.uint64(0)
    probe_count, stored_count = np.uint64(len(probe_codes)), np.uint64(len(stored_codes))
    while i < probe_count and position < stored_count:
        first[i] = position
        is_below = np.uint64(stored_codes[position] < probe_codes[i])
        position += is_below
        i += np.uint64(1) - is_below
    first[i:] = stored_count
    return first[:-1]


@njit(cache=True)
def _searched_positions(probe_codes: Any, stored_codes: Any) -> Any:
    """The same where there are many more stored codes: double the step until past the code, then halve the gap."""
    count = len(stored_codes)
    first = np.empty(len(probe_codes), np.uint64)
    left = 0
    for i in range(len(probe_codes)):
        code = probe_codes[i]
        step = 1
        while left + step < count and stored_codes[left + step] < code:
            left += step
            step += step
        right = min(left + step, count)
        if left < count and stored_codes[left] < code:
            left += 1
        while left < right:
            middle = (left + right) >> 1
            if stored_codes[middle] < code:
                left = middle + 1
            else:
                right = middle
        first[i] = left
    return first


@njit(cache=True)
def _runs(probe_codes: Any, probe_idx: Any, stored_codes: Any, first: Any) -> Any:
    """Only probe rows that have partners, where their runs of stored codes begin, and where their pairs end."""
    stored_count = np.uint64(len(stored_codes))
    met_idx = np.empty(len(first), np.int64)
    met_first = np.empty(len(first), np.uint64)
    ends = np.empty(len(first), np.int64)
    count = np.uint64(0)
    total = np.int64(0)
    end = np.uint64(0)
    for i in range(len(first)):
        # Rows of equal code have one run: it is walked once, not once for each of them.
        end = max(end, first[i])
        while end < stored_count and stored_codes[end] == probe_codes[i]:
            end += np.uint64(1)
        total += np.int64(end - first[i])
        met_idx[count] = probe_idx[i]
        met_first[count] = first[i]
        ends[count] = total
        count += np.uint64(end > first[i])
    return met_idx[:count], met_first[:count], ends[:count]
