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

All buckets of an index are matched in one pass of compiled code: with hundreds of queries there are thousands of steps
and dozens of buckets, each pair of which would cost more to begin than its rows take. Buckets lie in maps of their own,
so their arrays are given by address. For many probe rows there is `match_in_passes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from dovetail.kernels.pointers import load32, load64, trailing_zeros
from dovetail.kernels.word_bits import WORD_BITS, bit_at

NULL_TIME = np.iinfo(np.int64).min
"""Stands for a NULL event time; it satisfies no bound."""

ALL_PASS = -1
NONE_PASS = -2
NO_LOWER = NULL_TIME + 1
NO_UPPER = np.iinfo(np.int64).max
_BUCKET, _ROW, _FIRST, _ENTRY = range(4)
"""Where matching goes on: a bucket, a probe row, the first entry not below its code, the next entry of its run."""
_NOT_BEGUN = -1
_FEWEST_PAIRS = 1 << 10
_LOOKS_AT_ONCE = 1 << 22
"""So many entries are looked at before somebody looks at the clock."""

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

    def __post_init__(self) -> None:
        # One layout, so that kernels are compiled once: codes may lie in a read-only map, bits by row.
        self.codes = np.require(self.codes, requirements=["C", "W"])
        self.bits = np.require(self.bits, requirements=["C", "W"])
        self.times = np.require(self.times, requirements=["C", "W"])

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

    `places[leg]` is where the leg's selection bit lies in those words, or `ALL_PASS` or `NONE_PASS`. `ordinal` is the
    bucket's, which references to its rows begin with.
    """

    codes: U64
    rows: npt.NDArray[np.uint32]
    times: I64
    time_range: tuple[int, int]
    places: npt.NDArray[np.int32]
    word_addresses: U64
    ordinal: int = 0


class EntryTables:
    """Of each bucket, by its ordinal: where the entries' codes and rows and the rows' times begin, and what they span.

    A bucket is there once it was put there. The arrays that the addresses point into are kept as long.
    """

    def __init__(self, buckets: int) -> None:
        self.code_addresses: U64 = np.zeros(buckets, np.uint64)
        self.row_addresses: U64 = np.zeros(buckets, np.uint64)
        self.counts: I64 = np.zeros(buckets, np.int64)
        self.time_addresses: U64 = np.zeros(buckets, np.uint64)
        self.time_ranges: I64 = np.zeros((buckets, 2), np.int64)
        self._held: dict[int, tuple[U64, npt.NDArray[np.uint32], I64]] = {}

    def __contains__(self, ordinal: int) -> bool:
        return ordinal in self._held

    def arrays(self, ordinal: int) -> tuple[U64, npt.NDArray[np.uint32], I64]:
        """The codes and rows of a bucket's entries, and its rows' times."""
        return self._held[ordinal]

    def put(
        self, ordinal: int, codes: U64, rows: npt.NDArray[np.uint32], times: I64, time_range: tuple[int, int]
    ) -> None:
        """Entries that are dealt out lie apart: they are put together first."""
        codes, rows = np.ascontiguousarray(codes), np.ascontiguousarray(rows)
        self.code_addresses[ordinal] = codes.ctypes.data
        self.row_addresses[ordinal] = rows.ctypes.data
        self.counts[ordinal] = len(codes)
        self.time_addresses[ordinal] = times.ctypes.data
        self.time_ranges[ordinal] = time_range
        self._held[ordinal] = codes, rows, times


@dataclass(frozen=True)
class StoredBuckets:
    """The buckets of these `ordinals` with a table for all: `places[leg, ordinal]`, `word_addresses[ordinal, word]`."""

    ordinals: I64
    tables: EntryTables
    places: npt.NDArray[np.int32]
    word_addresses: U64

    def bucket(self, ordinal: int) -> StoredRows:
        """One of them alone."""
        codes, rows, times = self.tables.arrays(ordinal)
        first_us, last_us = self.tables.time_ranges[ordinal].tolist()
        places = np.ascontiguousarray(self.places[:, ordinal])
        return StoredRows(codes, rows, times, (first_us, last_us), places, self.word_addresses[ordinal], ordinal)


def one_bucket(stored: StoredRows) -> StoredBuckets:
    """A bucket alone, as ordinal 0."""
    tables = EntryTables(1)
    tables.put(0, stored.codes, stored.rows, np.ascontiguousarray(stored.times), stored.time_range)
    return StoredBuckets(
        np.zeros(1, np.int64), tables, stored.places.reshape(-1, 1), stored.word_addresses.reshape(1, -1)
    )


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
    """Equally long: `probe_idx[i]` meets row `stored_refs[i]`, and the legs in `bits[:, i]` want it.

    They are left of `near_count` pairs whose codes are equal and whose times are near enough for some leg.
    """

    probe_idx: I64
    stored_refs: U64
    bits: U64
    near_count: int


def match_pairs(probe: ProbeRows, stored: StoredBuckets, bounds: LegBounds, *, max_pairs: int) -> Iterator[Pairs]:
    """See the module's head."""
    if len(probe.codes) == 0 or len(stored.ordinals) == 0:
        return
    tables = stored.tables
    probing = _Probing(probe.codes, probe.bits, probe.times)
    entries = _Entries(stored.ordinals, tables.code_addresses, tables.row_addresses, tables.counts)
    times = _Times(tables.time_addresses, tables.time_ranges)
    legs = _Legs(stored.places, stored.word_addresses, bounds.lower, bounds.upper, bounds.is_per_leg)
    loosest = _Bounds(*bounds.loosest)
    at = np.array([0, 0, 0, _NOT_BEGUN], np.int64)
    room = min(max_pairs, max(_FEWEST_PAIRS, len(probe.codes)))
    while at[_BUCKET] < len(stored.ordinals):
        found = _Found(
            np.empty(room, np.int64), np.empty(room, np.uint64), np.empty((probe.bits.shape[0], room), np.uint64)
        )
        count, near_count = _match(probing, entries, times, legs, loosest, at, found)
        # Even if it is empty: whoever asks looks at the time now and then.
        yield Pairs(found.idx[:count], found.refs[:count], found.bits[:, :count], near_count)
        room = min(max_pairs, 4 * room)


class _Probing(NamedTuple):
    codes: Any
    bits: Any
    times: Any


class _Entries(NamedTuple):
    ordinals: Any
    code_addresses: Any
    row_addresses: Any
    counts: Any


class _Times(NamedTuple):
    addresses: Any
    ranges: Any


class _Legs(NamedTuple):
    places: Any
    word_addresses: Any
    lower: Any
    upper: Any
    is_per_leg: Any


class _Bounds(NamedTuple):
    lower: Any
    upper: Any


class _Found(NamedTuple):
    idx: Any
    refs: Any
    bits: Any


@njit(cache=True)
def _match(
    probing: Any, entries: Any, stored_times: Any, legs: Any, loosest: Any, at: Any, found: Any
) -> tuple[Any, Any]:
    """Pairs from where `at` says, until there is no room, or nothing left, or much was looked at.

    What was not wanted is written as well, and the next pair over it: cheaper than a branch that nobody can predict.
    """
    codes, bits, times = probing
    count, near_count, looks = 0, 0, 0
    bucket, i, first, entry = at[_BUCKET], at[_ROW], at[_FIRST], at[_ENTRY]
    while bucket < len(entries.ordinals):
        ordinal = entries.ordinals[bucket]
        code_address, row_address = entries.code_addresses[ordinal], entries.row_addresses[ordinal]
        time_address, stored_count = stored_times.addresses[ordinal], entries.counts[ordinal]
        while i < len(codes):
            looks += 1
            if looks > _LOOKS_AT_ONCE:
                at[_BUCKET], at[_ROW], at[_FIRST], at[_ENTRY] = bucket, i, first, entry
                return count, near_count
            code = codes[i]
            if entry == _NOT_BEGUN:
                if not _can_meet(i, bits, times, stored_times.ranges[ordinal], loosest):
                    i += 1
                    continue
                first = entry = _first_not_below(code_address, stored_count, first, code)
            while entry < stored_count and load64(code_address + np.uint64(entry * 8)) == code:
                if count == len(found.idx):
                    at[_BUCKET], at[_ROW], at[_FIRST], at[_ENTRY] = bucket, i, first, entry
                    return count, near_count
                row = np.uint64(load32(row_address + np.uint64(entry * 4)))
                entry += 1
                looks += 1
                time = np.int64(load64(time_address + row * np.uint64(8))) if times.shape[0] else np.int64(0)
                is_near = _is_near(time, times, i, loosest)
                near_count += is_near
                found.idx[count] = i
                found.refs[count] = (np.uint64(ordinal) << np.uint64(32)) | row
                count += is_near and _add_wanting(i, probing, legs, ordinal, row, time, found.bits, count)
            entry = _NOT_BEGUN
            i += 1
        bucket += 1
        i, first = 0, 0
    at[_BUCKET] = bucket
    return count, near_count


@njit(cache=True)
def _add_wanting(
    i: Any, probing: Any, legs: Any, ordinal: Any, row: Any, time: Any, found_bits: Any, place: Any
) -> Any:
    """Of the legs that want probe row i, those whose selection and bounds the stored row passes; whether any does."""
    bits, times = probing.bits, probing.times
    any_bits = np.uint64(0)
    for word in range(bits.shape[0]):
        left = bits[word, i]
        kept = np.uint64(0)
        loaded_word = -1
        selected = np.uint64(0)
        while left:
            bit = trailing_zeros(left)
            left &= left - np.uint64(1)
            leg = np.uint64(word * 64) + bit
            at = legs.places[leg, ordinal]
            passes = np.uint64(at == ALL_PASS)
            if at >= 0:
                if at >> 6 != loaded_word:
                    loaded_word = at >> 6
                    selected = load64(legs.word_addresses[ordinal, loaded_word] + row * np.uint64(8))
                passes = (selected >> np.uint64(at & 63)) & np.uint64(1)
            if legs.is_per_leg:
                for member in range(times.shape[0]):
                    lower, upper = legs.lower[leg, member], legs.upper[leg, member]
                    passes &= np.uint64(_is_within(time, times[member, i], lower, upper))
            kept |= passes << bit
        found_bits[word, place] = kept
        any_bits |= kept
    return any_bits != np.uint64(0)


@njit(cache=True)
def _is_near(time: Any, times: Any, i: Any, loosest: Any) -> Any:
    """Whether a stored time is within the loosest bounds against every member of probe row i."""
    is_near = True
    for member in range(times.shape[0]):
        is_near &= _is_within(time, times[member, i], loosest.lower[member], loosest.upper[member])
    return is_near


@njit(cache=True)
def _can_meet(i: Any, bits: Any, times: Any, time_range: Any, loosest: Any) -> Any:
    """Whether some leg wants the row and its times are near enough to the bucket's."""
    wanted = np.uint64(0)
    for word in range(bits.shape[0]):
        wanted |= bits[word, i]
    is_near = wanted != np.uint64(0)
    for member in range(times.shape[0]):
        time, low, high = times[member, i], loosest.lower[member], loosest.upper[member]
        # A NULL time is below whatever the earliest may be.
        if high != NO_UPPER:
            is_near &= time != NULL_TIME and (time_range[0] == NO_LOWER or time >= time_range[0] - high)
        if low != NO_LOWER:
            is_near &= time != NULL_TIME and (time_range[1] == NO_UPPER or time <= time_range[1] - low)
    return is_near


@njit(cache=True)
def _is_within(time: Any, other: Any, lower: Any, upper: Any) -> Any:
    """Whether a stored time is as far from a member's as a bound says; a NULL is far from everything."""
    apart = time - other
    is_free = (lower == NO_LOWER) & (upper == NO_UPPER)
    return is_free | ((time != NULL_TIME) & (other != NULL_TIME) & (apart >= lower) & (apart <= upper))


@njit(cache=True)
def _first_not_below(address: Any, count: Any, left: Any, code: Any) -> Any:
    """From `left` on: double the step until past the code, then halve the gap."""
    step = 1
    while left + step < count and load64(address + np.uint64((left + step) * 8)) < code:
        left += step
        step += step
    right = min(left + step, count)
    while left < right:
        middle = (left + right) >> 1
        if load64(address + np.uint64(middle * 8)) < code:
            left = middle + 1
        else:
            right = middle
    return left
