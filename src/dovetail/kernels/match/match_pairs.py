"""Which stored rows a sorted run of probe rows meets, and which legs want each pair (A4).

    probe codes   3   3   7   9          stored codes   1   3   3   8   9
                  |   |       |                             |   |       |
                  +---+-------------- meet -----------------+---+       |
                              +-------------------- meet ---------------+

Both sides are sorted by code, so one forward pass finds where each probe row's partners begin: the cost follows
probe rows times log(gap) plus pairs, not stored rows, and a store a hundred times larger than the batch stays cheap.

A probe row brings a bit for every leg that still wants it. A pair keeps those bits whose selection the stored
row passed on arrival and whose time bounds hold; pairs without bits do not come out, but are counted. Pairs are
ordered by probe row, then stored position, in pieces of about `max_pairs`, so that skew cannot exhaust memory. Codes
only: the caller confirms real keys if codes are hashes.

Whether a row matches is as unpredictable as a coin, and a mispredicted branch costs more than all else here. So
each step is a small loop of its own that writes every candidate and advances by 0 or 1 instead of branching.
Positions are unsigned: for signed ones the compiler would add code for negative ones to every access.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from dovetail.kernels.pointers import load64, trailing_zeros
from dovetail.kernels.word_bits import WORD_BITS, bit_at

NULL_TIME = np.iinfo(np.int64).min
"""Stands for a NULL event time; it satisfies no bound."""

ALL_PASS = -1
NONE_PASS = -2
NO_LOWER = NULL_TIME + 1
NO_UPPER = np.iinfo(np.int64).max
_MERGE_UP_TO = 8

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


@dataclass
class ProbeRows:
    """Sorted by code. `bits[word, i]` are the legs that want row i, `times[member, i]` its members' event times.

    Legs may be stopped while pairs are being found: `stops` counts how often that happened.
    """

    codes: U64
    bits: U64
    times: I64
    stops: int = 0

    def stop(self, legs: Sequence[int]) -> None:
        """These legs want no row any more."""
        for leg in legs:
            self.bits[leg // WORD_BITS] &= ~bit_at(leg)
        self.stops += 1
        self.__dict__.pop("wanted_mask", None)

    @cached_property
    def wanted_mask(self) -> npt.NDArray[np.bool_] | None:
        """Rows that some leg wants; None if that is every row."""
        wanted: npt.NDArray[np.bool_] = np.bitwise_or.reduce(self.bits) != 0
        return None if wanted.all() else wanted


@dataclass(frozen=True)
class StoredRows:
    """Entries of one bucket's index, sorted by code; `times` and the words of selection bits are by row.

    `places[leg]` is where the leg's selection bit lies in those words, or `ALL_PASS` or `NONE_PASS`.
    """

    codes: U64
    rows: npt.NDArray[np.uint32]
    times: I64
    time_range: tuple[int, int]
    places: npt.NDArray[np.int32]
    word_addresses: U64


@dataclass(frozen=True)
class LegBounds:
    """For each leg and member the accepted range of stored time minus that member's time, both ends included."""

    lower: I64
    upper: I64

    @property
    def member_count(self) -> int:
        return int(self.lower.shape[1])

    @cached_property
    def loosest(self) -> tuple[I64, I64]:
        """By member, the range that some leg accepts."""
        return self.lower.min(axis=0), self.upper.max(axis=0)

    @cached_property
    def is_bounded(self) -> bool:
        lower, upper = self.loosest
        return bool((lower != NO_LOWER).any() or (upper != NO_UPPER).any())

    @cached_property
    def is_per_leg(self) -> bool:
        """Whether some leg accepts less than the loosest."""
        lower, upper = self.loosest
        return bool((self.lower != lower).any() or (self.upper != upper).any())


@dataclass(frozen=True)
class Pairs:
    """Equally long: `probe_idx[i]` meets row `stored_rows[i]`, and the legs in `bits[:, i]` want it.

    They are left of `near_count` pairs whose codes are equal and whose times are near enough for some leg.
    """

    probe_idx: I64
    stored_rows: npt.NDArray[np.uint32]
    bits: U64
    near_count: int


def match_pairs(probe: ProbeRows, stored: StoredRows, bounds: LegBounds, *, max_pairs: int) -> Iterator[Pairs]:
    """See the module's head."""
    if len(probe.codes) == 0 or len(stored.codes) == 0:
        return
    lower, upper = bounds.loosest
    can_meet = _rows_that_can_meet(probe, bounds, stored.time_range)
    probe_idx = np.arange(len(probe.codes)) if can_meet is None else np.flatnonzero(can_meet)
    codes = probe.codes if can_meet is None else probe.codes[probe_idx]
    probe_idx, first, ends = _runs(codes, probe_idx, stored.codes, _positions(codes, stored.codes))
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
        yield Pairs(pair_idx, rows, bits, near_count)
        begin = end


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


def _still_wanted(probe: ProbeRows, probe_idx: I64, first: U64, lengths: I64) -> tuple[I64, U64, I64]:
    """Of the runs that are left, those of rows that some leg wants."""
    if probe.wanted_mask is None:
        return probe_idx, first, np.cumsum(lengths)
    wanted = probe.wanted_mask[probe_idx]
    return probe_idx[wanted], first[wanted], np.cumsum(lengths[wanted])


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


@njit(cache=True)
def _expand(probe_idx: Any, first: Any, ends: Any, stored_rows: Any) -> Any:
    """The pairs of these probe rows, each of which has at least one."""
    pair_idx = np.empty(ends[-1], np.int64)
    rows = np.empty(ends[-1], np.uint32)
    filled = np.uint64(0)
    for i in range(len(probe_idx)):
        entry = first[i]
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


@njit(cache=True)
def wanting_legs(pair_idx: Any, rows: Any, probe_bits: Any, places: Any, word_addresses: Any) -> Any:
    """Of the legs that want the probe row, those whose selection the stored row passed."""
    bits = np.empty((probe_bits.shape[0], len(rows)), np.uint64)
    for word in range(probe_bits.shape[0]):
        for k in range(len(rows)):
            left = probe_bits[word, np.uint64(pair_idx[k])]
            kept = np.uint64(0)
            loaded_word = -1
            selected = np.uint64(0)
            while left:
                bit = trailing_zeros(left)
                left &= left - np.uint64(1)
                place = places[np.uint64(word * 64) + bit]
                passes = np.uint64(place == ALL_PASS)
                if place >= 0:
                    if place >> 6 != loaded_word:
                        loaded_word = place >> 6
                        selected = load64(word_addresses[loaded_word] + np.uint64(rows[k]) * np.uint64(8))
                    passes = (selected >> np.uint64(place & 63)) & np.uint64(1)
                kept |= passes << bit
            bits[word, k] = kept
    return bits


@njit(cache=True)
def hold_bounds(
    bits: Any, pair_idx: Any, rows: Any, member_times: Any, stored_times: Any, lower: Any, upper: Any
) -> None:
    """Take away the bits of legs whose own bounds do not hold."""
    for word in range(bits.shape[0]):
        for k in range(len(rows)):
            left = bits[word, k]
            kept = left
            time = stored_times[rows[k]]
            while left:
                bit = trailing_zeros(left)
                left &= left - np.uint64(1)
                leg = np.uint64(word * 64) + bit
                for member in range(lower.shape[1]):
                    low, high = lower[leg, member], upper[leg, member]
                    other = member_times[member, np.uint64(pair_idx[k])]
                    apart = time - other
                    holds = (time != NULL_TIME) & (other != NULL_TIME) & (apart >= low) & (apart <= high)
                    is_free = (low == NO_LOWER) & (high == NO_UPPER)
                    kept &= ~(np.uint64(not (holds or is_free)) << bit)
            bits[word, k] = kept


@njit(cache=True)
def with_bits(pair_idx: Any, rows: Any, bits: Any) -> Any:
    """Without the pairs that no leg wants any more."""
    count = np.uint64(0)
    for k in range(len(rows)):
        any_bits = np.uint64(0)
        pair_idx[count] = pair_idx[k]
        rows[count] = rows[k]
        for word in range(bits.shape[0]):
            any_bits |= bits[word, k]
            bits[word, count] = bits[word, k]
        count += np.uint64(any_bits != np.uint64(0))
    return pair_idx[:count], rows[:count], bits[:, :count]
