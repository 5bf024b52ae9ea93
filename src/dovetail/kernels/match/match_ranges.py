"""Which stored rows lie in the ranges of probe rows, and which legs want each pair: conditions beside equality (B6).

    probe rows              (code 3, 20..40)   (code 3, 35..36)   (code 7, 0..)
                                 |                  |
    stored, by code, order   (3, 10)  (3, 25)  (3, 30)  (3, 36)  (8, 5)
                                        searched: one run of entries a probe row

An index ascends by code and, within a code, by the order values of one expression. So a probe row's run of equal code
(without keys: the whole index) is narrowed by binary search. What is asked of other expressions is looked at while the
run is walked, before any pair is made: `zones` hold the least and the greatest value of each block of entries, and
blocks that cannot hold a partner are skipped. Only then are selections and the ranges of single legs asked.

A probe row may have as many partners as there are rows, so runs are walked in pieces: neither pairs nor candidates
beyond about `max_pairs` are ever held, and legs may be stopped between any two pieces (see `match_pairs`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from dovetail.kernels.addresses import address_of
from dovetail.kernels.gather_rows import make_refs
from dovetail.kernels.match.code_runs import code_runs
from dovetail.kernels.match.decide_pairs import hold_bounds, wanting_legs, with_bits
from dovetail.kernels.match.gallop import first_above, first_at_least
from dovetail.kernels.match.match_pairs import LegBounds, Pairs, ProbeRows, StoredRows
from dovetail.kernels.match.order_values import RowRanges, saturating_sum
from dovetail.kernels.match.special_values import NO_LOWER, NO_UPPER, NULL_TIME
from dovetail.kernels.pointers import load8, load64

ZONE_BITS = 6
ZONE = 1 << ZONE_BITS
WALKED_PER_PAIR = 64
"""Entries that a piece may walk, found or not, for each pair that it may hold."""

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class EntryValues:
    """Order values of one expression by entry of an index, and `is_null` where some are NULL."""

    values: I64
    is_null: npt.NDArray[np.bool_] | None

    def take(self, part: slice | I64) -> EntryValues:
        """Those of some entries, in one piece of memory."""
        is_null = None if self.is_null is None else np.ascontiguousarray(self.is_null[part])
        return EntryValues(np.ascontiguousarray(self.values[part]), is_null)

    @cached_property
    def zones(self) -> tuple[I64, I64]:
        """Least and greatest value of every block of entries. NULLs count with whatever value they have."""
        starts = np.arange(0, len(self.values), ZONE)
        return np.minimum.reduceat(self.values, starts), np.maximum.reduceat(self.values, starts)


@dataclass(frozen=True)
class Checked:
    """A range of every probe row over an expression that the index is not ordered by."""

    ranges: RowRanges
    entries: EntryValues


@dataclass(frozen=True)
class OwnRange:
    """A range that only some legs have, given by their bits: narrower than what all legs accept together."""

    legs: U64
    ranges: RowRanges
    entries: EntryValues


@dataclass(frozen=True)
class Ranges:
    """What is asked of a bucket's entries: `searched` speaks of `orders`, the order values of the index."""

    searched: RowRanges | None
    orders: I64
    checked: Sequence[Checked] = ()
    own: Sequence[OwnRange] = ()


def ranges_of_bounds(times: I64, bounds: LegBounds) -> RowRanges:
    """By probe row, the stored event times that some leg accepts; `times` are those of its members."""
    lower = np.full(times.shape[1], NO_LOWER, np.int64)
    upper = np.full(times.shape[1], NO_UPPER, np.int64)
    for own, low, high in zip(times, *(each.tolist() for each in bounds.loosest), strict=True):
        if low != NO_LOWER:
            lower = np.maximum(lower, saturating_sum(own, low)[0])
        if high != NO_UPPER:
            upper = np.minimum(upper, saturating_sum(own, high)[0])
        if low != NO_LOWER or high != NO_UPPER:
            # A NULL is far from everything.
            upper[own == NULL_TIME] = NULL_TIME
    return RowRanges(lower, upper)


def match_ranges(
    probe: ProbeRows, stored: StoredRows, bounds: LegBounds, ranges: Ranges, *, has_keys: bool, max_pairs: int
) -> Iterator[Pairs]:
    """See the module's head. `bounds` that all legs share are among the ranges; here each leg's own are held."""
    if len(probe.codes) == 0 or len(stored.codes) == 0:
        return
    idx, first, last = _runs(probe, stored, ranges, has_keys=has_keys)
    checks = _Checks.of(ranges.checked)
    stops = probe.stops
    position = np.zeros(2, np.int64)
    while position[0] < len(idx):
        if probe.stops != stops:
            stops = probe.stops
            if probe.wanted_mask is not None:
                _skip_unwanted(probe.wanted_mask, idx, first, last)
        pair_idx, entries = _piece(idx, first, last, position, checks, max_pairs)
        if len(pair_idx):
            yield _decided(probe, stored, bounds, ranges, pair_idx, entries)


def _decided(
    probe: ProbeRows, stored: StoredRows, bounds: LegBounds, ranges: Ranges, pair_idx: I64, entries: I64
) -> Pairs:
    """The legs that want each of these pairs."""
    rows = stored.rows[entries]
    bits = wanting_legs(pair_idx, rows, probe.bits, stored.places, stored.word_addresses)
    for own in ranges.own:
        is_null = np.zeros(0, np.bool_) if own.entries.is_null is None else own.entries.is_null
        _hold_range(bits, own.legs, pair_idx, entries, own.ranges.lower, own.ranges.upper, own.entries.values, is_null)
    if bounds.is_per_leg:
        hold_bounds(bits, pair_idx, rows, probe.times, stored.times, bounds.lower, bounds.upper)
    near_count = len(pair_idx)
    pair_idx, rows, bits = with_bits(pair_idx, rows, bits)
    return Pairs(pair_idx, make_refs(stored.ordinal, rows), bits, near_count)


@dataclass(frozen=True)
class _Checks:
    """Checked ranges for the kernel: lower and upper ends by range and probe row; by range, where arrays lie.

    `arrays` are the addresses of values, NULL marks (0: there are none), and least and greatest values of zones.
    """

    lower: I64
    upper: I64
    arrays: U64

    @staticmethod
    def of(checked: Sequence[Checked]) -> _Checks:
        arrays = [(each.entries.values, each.entries.is_null, *each.entries.zones) for each in checked]
        return _Checks(
            np.array([each.ranges.lower for each in checked]),
            np.array([each.ranges.upper for each in checked]),
            np.array([[0 if each is None else address_of(each) for each in of] for of in arrays], np.uint64),
        )


def _runs(probe: ProbeRows, stored: StoredRows, ranges: Ranges, *, has_keys: bool) -> tuple[I64, I64, I64]:
    """Probe rows that may have partners, and the entries from `first` to below `last` that these can be."""
    can_meet = probe.wanted_mask
    for each in (ranges.searched, *(checked.ranges for checked in ranges.checked)):
        if each is not None:
            is_any = each.lower <= each.upper
            can_meet = is_any if can_meet is None else can_meet & is_any
    if has_keys or ranges.searched is None:
        idx = np.arange(len(probe.codes)) if can_meet is None else np.flatnonzero(can_meet)
    else:
        # Neighbours in the order of the index search and read the same lines of memory.
        idx = ranges.searched.ascending
        idx = idx if can_meet is None else idx[can_meet[idx]]
    if has_keys:
        idx, first, last = code_runs(probe.codes[idx], idx, stored.codes)
    else:
        first, last = np.zeros(len(idx), np.int64), np.full(len(idx), len(stored.codes))
    if ranges.searched is None:
        return idx, first, last
    return _narrowed(  # type: ignore[no-any-return]
        idx, first, last, ranges.orders, ranges.searched.lower, ranges.searched.upper
    )


def _piece(idx: I64, first: I64, last: I64, position: I64, checks: _Checks, max_pairs: int) -> tuple[I64, I64]:
    """The next pairs; `position` is the probe row that is being walked, and how many of its entries are done."""
    if len(checks.arrays) == 0:
        return _take_all(idx, first, last, position, max_pairs)  # type: ignore[no-any-return]
    return _take_checked(  # type: ignore[no-any-return]
        idx, first, last, position, checks.lower, checks.upper, checks.arrays, max_pairs
    )


@njit(cache=True)
def _narrowed(idx: Any, first: Any, last: Any, orders: Any, lower: Any, upper: Any) -> Any:
    """The part of each run whose order values lie in the row's range; rows for which there is none are left out.

    Each search begins where the row before found its own, if that can be: neighbours ask for much the same.
    """
    kept_idx = np.empty(len(idx), np.int64)
    kept_first = np.empty(len(idx), np.int64)
    kept_last = np.empty(len(idx), np.int64)
    count = np.int64(0)
    run_begin, before, found = -1, 0, 0
    for i in range(len(idx)):
        low, high = lower[idx[i]], upper[idx[i]]
        begin = first[i]
        if begin == run_begin and low >= before:
            begin = found
        begin = first_at_least(orders, begin, last[i], low)
        run_begin, before, found = first[i], low, begin
        end = first_above(orders, begin, last[i], high)
        kept_idx[count] = idx[i]
        kept_first[count] = begin
        kept_last[count] = end
        count += np.int64(end > begin)
    return kept_idx[:count], kept_first[:count], kept_last[:count]


@njit(cache=True)
def _skip_unwanted(wanted_mask: Any, idx: Any, first: Any, last: Any) -> None:
    for i in range(len(idx)):
        if not wanted_mask[idx[i]]:
            last[i] = first[i]


@njit(cache=True)
def _take_all(idx: Any, first: Any, last: Any, position: Any, max_pairs: Any) -> Any:
    """Every entry of the runs is a partner."""
    i, done = position[0], position[1]
    size, row = np.int64(0), i
    while row < len(idx) and size < max_pairs:
        size += last[row] - first[row]
        row += 1
    size = min(max(size - done, np.int64(0)), max_pairs)
    pair_idx = np.empty(size, np.int64)
    entries = np.empty(size, np.int64)
    count = np.int64(0)
    while i < len(idx) and count < size:
        begin = first[i] + done
        taken = min(max(last[i] - begin, 0), size - count)
        for k in range(taken):
            pair_idx[count + k] = idx[i]
            entries[count + k] = begin + k
        count += taken
        done += taken
        if first[i] + done >= last[i]:
            i += 1
            done = np.int64(0)
    while i < len(idx) and first[i] + done >= last[i]:
        i += 1
        done = np.int64(0)
    position[0], position[1] = i, done
    return pair_idx, entries


@njit(cache=True)
def _take_checked(
    idx: Any,
    first: Any,
    last: Any,
    position: Any,
    lower: Any,
    upper: Any,
    arrays: Any,
    max_pairs: Any,
) -> Any:
    """Entries that lie in all checked ranges too, found block by block."""
    pair_idx = np.empty(max_pairs + ZONE, np.int64)
    entries = np.empty(max_pairs + ZONE, np.int64)
    count, walked = np.uint64(0), np.int64(0)
    i, done = position[0], position[1]
    while i < len(idx) and count < np.uint64(max_pairs) and walked < max_pairs * WALKED_PER_PAIR:
        entry = first[i] + done
        if entry >= last[i]:
            i += 1
            done = np.int64(0)
            continue
        zone = entry >> ZONE_BITS
        end = min((zone + 1) << ZONE_BITS, last[i])
        row = idx[i]
        can_hold = True
        for k in range(len(arrays)):
            offset = np.uint64(zone) * np.uint64(8)
            lowest, highest = np.int64(load64(arrays[k, 2] + offset)), np.int64(load64(arrays[k, 3] + offset))
            can_hold &= (lowest <= upper[k, row]) & (highest >= lower[k, row])
        walked += np.int64(1)
        if can_hold:
            walked += end - entry
            for each in range(entry, end):
                holds = True
                for k in range(len(arrays)):
                    value = np.int64(load64(arrays[k, 0] + np.uint64(each) * np.uint64(8)))
                    holds &= (value >= lower[k, row]) & (value <= upper[k, row])
                    if arrays[k, 1]:
                        holds &= load8(arrays[k, 1] + np.uint64(each)) == 0
                pair_idx[count] = row
                entries[count] = each
                count += np.uint64(holds)
        done = end - first[i]
    position[0], position[1] = i, done
    return pair_idx[:count], entries[:count]


@njit(cache=True)
def _hold_range(
    bits: Any, legs: Any, pair_idx: Any, entries: Any, lower: Any, upper: Any, values: Any, is_null: Any
) -> None:
    """Take the bits of these legs away from the pairs that their range does not hold."""
    for k in range(len(pair_idx)):
        value, row = values[entries[k]], pair_idx[k]
        holds = (value >= lower[row]) & (value <= upper[row])
        if len(is_null):
            holds &= not is_null[entries[k]]
        if not holds:
            for word in range(len(legs)):
                bits[word, k] &= ~legs[word]
