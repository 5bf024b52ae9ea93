"""What `match_pairs` does, for many probe rows: bucket by bucket, in a pass over all of them for each question.

Each pass is a small loop that writes every candidate and advances by 0 or 1 instead of branching, so that the processor
waits for many rows at once. With a thousand rows and more that is two to four times as fast as one loop that asks all
questions of a pair; with fewer, beginning so many loops for every bucket costs more than they do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from dovetail.kernels.gather_rows import make_refs
from dovetail.kernels.match.code_runs import code_runs
from dovetail.kernels.match.decide_pairs import hold_bounds, wanting_legs, with_bits
from dovetail.kernels.match.match_pairs import (
    NO_LOWER,
    NO_UPPER,
    NULL_TIME,
    LegBounds,
    Pairs,
    ProbeRows,
    StoredBuckets,
    StoredRows,
)

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


def match_in_passes(probe: ProbeRows, stored: StoredBuckets, bounds: LegBounds, *, max_pairs: int) -> Iterator[Pairs]:
    """As `match_pairs`; a probe row with more than `max_pairs` partners in a bucket has them in one piece."""
    for ordinal in stored.ordinals.tolist():
        bucket = stored.bucket(ordinal)
        if len(probe.codes) and len(bucket.codes):
            yield from _match_bucket(probe, bucket, bounds, max_pairs)


def _match_bucket(probe: ProbeRows, stored: StoredRows, bounds: LegBounds, max_pairs: int) -> Iterator[Pairs]:
    lower, upper = bounds.loosest
    can_meet = _rows_that_can_meet(probe, bounds, stored.time_range)
    probe_idx = np.arange(len(probe.codes)) if can_meet is None else np.flatnonzero(can_meet)
    codes = probe.codes if can_meet is None else probe.codes[probe_idx]
    probe_idx, first, last = code_runs(codes, probe_idx, stored.codes)
    ends = np.cumsum(last - first)
    begin = 0
    stops = probe.stops
    while begin < len(probe_idx):
        if probe.stops != stops:
            stops = probe.stops
            lengths = np.diff(ends, prepend=0)
            probe_idx, first, ends = _still_wanted(probe, probe_idx[begin:], first[begin:], lengths[begin:])
            begin = 0
            continue
        done = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, done + max_pairs, side="right")))
        pair_idx, rows = _expand(probe_idx[begin:end], first[begin:end], ends[begin:end] - done, stored.rows)
        for member in range(bounds.member_count):
            if lower[member] != NO_LOWER or upper[member] != NO_UPPER:
                pair_idx, rows = _near(pair_idx, rows, probe.times[member], stored.times, lower[member], upper[member])
        near_count = len(pair_idx)
        bits = wanting_legs(pair_idx, rows, probe.bits, stored.places, stored.word_addresses)
        if bounds.is_per_leg:
            hold_bounds(bits, pair_idx, rows, probe.times, stored.times, bounds.lower, bounds.upper)
        pair_idx, rows, bits = with_bits(pair_idx, rows, bits)
        # Even if it is empty: whoever asks looks at the time now and then.
        yield Pairs(pair_idx, make_refs(stored.ordinal, rows), bits, near_count)
        begin = end


def _rows_that_can_meet(
    probe: ProbeRows, bounds: LegBounds, time_range: tuple[int, int]
) -> npt.NDArray[np.bool_] | None:
    """Probe rows that some leg wants and whose times are near enough to the bucket's; None if that is every row."""
    if not bounds.is_bounded:
        return probe.wanted_mask
    lower, upper = bounds.loosest
    can_meet = np.ones(len(probe.codes), np.bool_) if probe.wanted_mask is None else probe.wanted_mask.copy()
    for times, low, high in zip(probe.times, lower.tolist(), upper.tolist(), strict=True):
        # A NULL time is below whatever the earliest may be.
        if high != NO_UPPER:
            can_meet &= times >= max(time_range[0] - high, NO_LOWER)
        if low != NO_LOWER:
            can_meet &= (times <= min(time_range[1] - low, NO_UPPER)) & (times != NULL_TIME)
    return can_meet


def _still_wanted(probe: ProbeRows, probe_idx: I64, first: I64, lengths: I64) -> tuple[I64, I64, I64]:
    """Of the runs that are left, those of rows that some leg wants."""
    if probe.wanted_mask is None:
        return probe_idx, first, np.cumsum(lengths)
    wanted = probe.wanted_mask[probe_idx]
    return probe_idx[wanted], first[wanted], np.cumsum(lengths[wanted])


@njit(cache=True)
def _expand(probe_idx: Any, first: Any, ends: Any, stored_rows: Any) -> Any:
    """The pairs of these probe rows, each of which has at least one."""
    pair_idx = np.empty(ends[-1], np.int64)
    rows = np.empty(ends[-1], np.uint32)
    filled = np.uint64(0)
    for i in range(len(probe_idx)):
        entry = np.uint64(first[i])
        while filled < np.uint64(ends[i]):
            pair_idx[filled] = probe_idx[i]
            rows[filled] = stored_rows[entry]
            filled += np.uint64(1)
            entry += np.uint64(1)
    return pair_idx, rows


@njit(cache=True)
def _near(pair_idx: Any, rows: Any, member_times: Any, stored_times: Any, lower: Any, upper: Any) -> Any:
    """Pairs whose times are as far apart as some leg accepts; a NULL is far from everything."""
    near_idx = np.empty(len(rows), np.int64)
    near_rows = np.empty(len(rows), np.uint32)
    count = np.uint64(0)
    for k in range(len(rows)):
        time, other = stored_times[rows[k]], member_times[np.uint64(pair_idx[k])]
        apart = time - other
        near_idx[count] = pair_idx[k]
        near_rows[count] = rows[k]
        count += np.uint64((time != NULL_TIME) & (other != NULL_TIME) & (apart >= lower) & (apart <= upper))
    return near_idx[:count], near_rows[:count]
