"""How many stored rows a row meets, and what they sum up to, without looking at each of them (D4).

    walked     3 at 10:00        3 at 10:02                     9 at 10:01        each with an interval of times
                  |                 |                              |
    folded     3 9:59   3 10:00   3 10:01   3 10:02   8 9:58   9 10:01   9 10:04  by code, then time
    run        [-----------------]
                                  [-----------------]          [-------]

One side of a join is walked, the other folded. Both are sorted by code, and the folded one within a code by time; so
what a walked row meets is a run of neighbours, found by binary search whatever its length. Prefix sums over the folded
side answer any run by one subtraction: the cost follows rows, not pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from dovetail.kernels.match.gallop import first_above, first_at_least
from dovetail.kernels.match.special_values import NO_LOWER, NO_UPPER, NULL_TIME

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TimeIntervals:
    """Per walked row the times that it accepts, both ends included; a row that accepts none has `lowest > highest`."""

    lowest: I64
    highest: I64


@dataclass(frozen=True)
class Runs:
    """Per walked row the folded entries from `begins` to before `ends`."""

    begins: I64
    ends: I64

    @cached_property
    def lengths(self) -> I64:
        return self.ends - self.begins

    def take(self, idx: npt.NDArray[Any]) -> Runs:
        return Runs(self.begins[idx], self.ends[idx])


def accepted_times(times: I64, lower: I64, upper: I64) -> TimeIntervals:
    """What lies between `lower` and `upper` after the times of all members: `times[member, row]`, bounds by member.

    `NO_LOWER` and `NO_UPPER` are no bounds; a NULL time accepts nothing if its member has a bound.
    """
    lowest, highest = _accepted(times, lower, upper)
    return TimeIntervals(lowest, highest)


def order_by_time(codes: U64, times: I64) -> I64 | None:
    """The entries, whose codes ascend, by code and then time; None if that is how they lie.

    Rows mostly arrive in the order of their times, so mostly there is nothing to do.
    """
    order: I64 = _ordered_runs(codes, times)
    return order if len(order) else None


def find_runs(walked_codes: U64, codes: U64, intervals: TimeIntervals | None = None, times: I64 | None = None) -> Runs:
    """The run of each walked row (codes ascending) among folded `codes`, which ascend and within which `times` do."""
    if intervals is None or times is None:
        return Runs(*_runs_of_codes(walked_codes, codes))
    return Runs(*_runs_of_times(walked_codes, codes, times, intervals.lowest, intervals.highest))


def entries_of_runs(runs: Runs) -> I64:
    """The positions of all entries in the runs, one run after the other."""
    firsts = runs.begins - np.cumsum(runs.lengths) + runs.lengths
    return np.repeat(firsts, runs.lengths) + np.arange(int(runs.lengths.sum()))


def prefix_counts(mask: npt.NDArray[np.bool_]) -> I64:
    """How many are set before each position, and after the last."""
    counts = np.zeros(len(mask) + 1, np.int64)
    np.cumsum(mask, out=counts[1:])
    return counts


@njit(cache=True)
def _plus(time: Any, offset: Any) -> Any:
    """The sum, or the outermost time of that side where it lies beyond all times."""
    if offset > 0 and time > NO_UPPER - offset:
        return np.int64(NO_UPPER)
    if offset < 0 and time < NO_LOWER - offset:
        return np.int64(NO_LOWER)
    return time + offset


@njit(cache=True)
def _accepted(times: Any, lower: Any, upper: Any) -> Any:
    lowest = np.full(times.shape[1], NO_LOWER, np.int64)
    highest = np.full(times.shape[1], NO_UPPER, np.int64)
    for member in range(times.shape[0]):
        low, high = lower[member], upper[member]
        if low == NO_LOWER and high == NO_UPPER:
            continue
        for i in range(times.shape[1]):
            time = times[member, i]
            if time == NULL_TIME:
                lowest[i] = NO_UPPER
                highest[i] = NO_LOWER
                continue
            if low != NO_LOWER:
                lowest[i] = max(lowest[i], _plus(time, low))
            if high != NO_UPPER:
                highest[i] = min(highest[i], _plus(time, high))
    return lowest, highest


@njit(cache=True)
def _ordered_runs(codes: Any, times: Any) -> Any:
    """The order; empty if nothing has to move."""
    count = len(codes)
    is_ordered = True
    for i in range(1, count):
        if codes[i] == codes[i - 1] and times[i] < times[i - 1]:
            is_ordered = False
            break
    if is_ordered:
        return np.empty(0, np.int64)
    order = np.arange(count)
    begin = 0
    while begin < count:
        end = begin + 1
        is_ordered = True
        while end < count and codes[end] == codes[begin]:
            is_ordered &= times[end] >= times[end - 1]
            end += 1
        if not is_ordered:
            order[begin:end] = begin + np.argsort(times[begin:end], kind="mergesort")
        begin = end
    return order


@njit(cache=True)
def _runs_of_codes(walked_codes: Any, codes: Any) -> Any:
    begins = np.empty(len(walked_codes), np.int64)
    ends = np.empty(len(walked_codes), np.int64)
    begin, end = 0, 0
    for i in range(len(walked_codes)):
        if i == 0 or walked_codes[i] != walked_codes[i - 1]:
            begin = first_at_least(codes, end, len(codes), walked_codes[i])
            end = first_above(codes, begin, len(codes), walked_codes[i])
        begins[i] = begin
        ends[i] = end
    return begins, ends


@njit(cache=True)
def _runs_of_times(walked_codes: Any, codes: Any, times: Any, lowest: Any, highest: Any) -> Any:
    begins = np.empty(len(walked_codes), np.int64)
    ends = np.empty(len(walked_codes), np.int64)
    run_begin, run_end = 0, 0
    begin, end = 0, 0
    for i in range(len(walked_codes)):
        is_same = i > 0 and walked_codes[i] == walked_codes[i - 1]
        if not is_same:
            run_begin = first_at_least(codes, run_end, len(codes), walked_codes[i])
            run_end = first_above(codes, run_begin, len(codes), walked_codes[i])
        if lowest[i] > highest[i]:
            begins[i] = run_begin
            ends[i] = run_begin
            begin, end = run_begin, run_begin
            continue
        # Walked rows of one code mostly ascend in time, too: the search goes on where the last one ended.
        if not is_same or (begin > run_begin and times[begin - 1] >= lowest[i]):
            begin = run_begin
        begin = first_at_least(times, begin, run_end, lowest[i])
        if not is_same or end < begin or (end > begin and times[end - 1] > highest[i]):
            end = begin
        end = first_above(times, end, run_end, highest[i])
        begins[i] = begin
        ends[i] = end
    return begins, ends
