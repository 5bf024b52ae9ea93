"""Which stored rows a sorted run of probe rows meets: equal code, event time inside the row's interval.

    probe_codes   3   3   7   9          stored_codes   1   3   3   8   9
                  |   |       |                             |   |       |
                  +---+-------------- meet -----------------+---+       |
                              +-------------------- meet ---------------+

Both sides are sorted by code, so one forward pass finds everything: the cost follows probe rows times
log(gap) plus pairs, not stored rows, and a store a hundred times larger than the batch stays cheap.
Every pair with equal codes and stored time in [time_lower, time_upper] of its probe row comes out exactly
once, ordered by probe row, then stored position. Codes only: the caller confirms real keys if they are
hashes. Output is cut into pieces of about `max_pairs`, so that skew cannot exhaust memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

NULL_TIME = np.iinfo(np.int64).min
"""Stands for a NULL event time; intervals never include it."""

I64 = npt.NDArray[np.int64]
NO_TIMES: I64 = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Pairs:
    """Equally long: `probe_idx[i]` meets `stored_idx[i]`."""

    probe_idx: I64
    stored_idx: I64


@dataclass(frozen=True)
class TimeIntervals:
    """For each probe row the stored event times it may meet, both ends included."""

    lower: I64
    upper: I64


def match_keys(
    probe_codes: npt.NDArray[np.uint64],
    stored_codes: npt.NDArray[np.uint64],
    intervals: TimeIntervals | None,
    stored_times: I64 | None,
    *,
    max_pairs: int,
) -> Iterator[Pairs]:
    """See the module's head. Without `intervals` time does not matter."""
    if len(probe_codes) == 0 or len(stored_codes) == 0:
        return
    if intervals is None or stored_times is None:
        has_time, lower, upper, times = False, NO_TIMES, NO_TIMES, NO_TIMES
    else:
        has_time, lower, upper, times = True, intervals.lower, intervals.upper, stored_times
    first, run_length, pair_count = _locate(probe_codes, stored_codes, has_time, lower, upper, times)
    ends = np.cumsum(pair_count)
    begin = 0
    while begin < len(probe_codes):
        done = int(ends[begin - 1]) if begin else 0
        if done == int(ends[-1]):
            return
        end = max(begin + 1, int(np.searchsorted(ends, done + max_pairs, side="right")))
        size = int(ends[end - 1]) - done
        if size:
            probe_idx, stored_idx = _expand((begin, end), size, first, run_length, has_time, lower, upper, times)
            yield Pairs(probe_idx, stored_idx)
        begin = end


@njit(cache=True)
def _locate(probe: Any, stored: Any, has_time: Any, lower: Any, upper: Any, times: Any) -> Any:
    probe_count, stored_count = len(probe), len(stored)
    first = np.empty(probe_count, np.int64)
    run_length = np.zeros(probe_count, np.int64)
    pair_count = np.zeros(probe_count, np.int64)
    position = 0
    for i in range(probe_count):
        code = probe[i]
        # Gallop: double the step until past the code, then halve the last gap.
        step = 1
        left = position
        while left + step < stored_count and stored[left + step] < code:
            left += step
            step += step
        right = min(left + step, stored_count)
        if left < stored_count and stored[left] < code:
            left += 1
        while left < right:
            middle = (left + right) >> 1
            if stored[middle] < code:
                left = middle + 1
            else:
                right = middle
        position = left
        first[i] = position
        j = position
        count = 0
        while j < stored_count and stored[j] == code:
            if not has_time or (lower[i] <= times[j] and times[j] <= upper[i]):
                count += 1
            j += 1
        run_length[i] = j - position
        pair_count[i] = count
    return first, run_length, pair_count


@njit(cache=True)
def _expand(
    probes: Any, size: Any, first: Any, run_length: Any, has_time: Any, lower: Any, upper: Any, times: Any
) -> Any:
    begin, end = probes
    probe_idx = np.empty(size, np.int64)
    stored_idx = np.empty(size, np.int64)
    filled = 0
    for i in range(begin, end):
        for j in range(first[i], first[i] + run_length[i]):
            if not has_time or (lower[i] <= times[j] and times[j] <= upper[i]):
                probe_idx[filled] = i
                stored_idx[filled] = j
                filled += 1
    return probe_idx, stored_idx
