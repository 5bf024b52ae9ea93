"""Which of up to 64 queries want each matched pair, decided in one pass over the pairs (A4).

A bit per leg. A probe row brings the bits of the legs that still want it; a pair keeps those bits whose
selection the stored row passed on arrival and whose time bounds hold. Where a selection's bit lies differs from
bucket to bucket, so a table gives its place per (leg, bucket).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from dovetail.kernels.match_keys import NULL_TIME
from dovetail.kernels.pointers import load64

LEGS_PER_WORD = 64
ALL_PASS = -1
NONE_PASS = -2
NO_LOWER = NULL_TIME + 1
NO_UPPER = np.iinfo(np.int64).max

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SelectionBits:
    """`place[leg, bucket]` is a bit's place or `ALL_PASS`/`NONE_PASS`; `addresses[bucket, word]` where words begin."""

    place: npt.NDArray[np.int32]
    addresses: U64


@dataclass(frozen=True)
class LegBounds:
    """For each leg and bounded member the accepted range of stored time minus that member's time."""

    member_times: I64
    lower: I64
    upper: I64


def bits_of_rows(places: Sequence[int], words_of: Callable[[int], U64], length: int) -> U64:
    """For each of `length` rows the legs whose selection it passes; `words_of(n)` has the n-th word of every row."""
    bits = np.zeros(length, np.uint64)
    for leg, place in enumerate(places):
        if place == ALL_PASS:
            bits |= np.uint64(1 << leg)
        elif place != NONE_PASS:
            _add_bit(bits, words_of(place // 64), np.uint64(place % 64), np.uint64(leg))
    return bits


def bits_of_pairs(
    probe_bits: U64, probe_idx: I64, stored_refs: U64, selections: SelectionBits, bounds: LegBounds | None, times: I64
) -> U64:
    """For each pair the legs that want it."""
    bits: U64 = probe_bits[probe_idx]
    if not (selections.place == ALL_PASS).all():
        bits = _selected(bits, stored_refs, selections.place, selections.addresses)
    if bounds is not None:
        _bounded(bits, probe_idx, times, bounds.member_times, bounds.lower, bounds.upper)
    return bits


def rows_of_legs(bits: U64, leg_count: int) -> list[I64]:
    """For each leg the rows that have its bit."""
    if leg_count == 1:
        return [np.flatnonzero(bits)]
    ends = np.cumsum(_count_bits(bits, leg_count))
    rows = _rows_by_bit(bits, ends - np.diff(ends, prepend=0), int(ends[-1]))
    return np.split(rows, ends[:-1])


@njit(cache=True)
def _add_bit(bits: Any, words: Any, place: Any, leg: Any) -> None:
    for i in range(len(bits)):
        bits[i] |= ((words[i] >> place) & np.uint64(1)) << leg


@njit(cache=True)
def _selected(bits: Any, refs: Any, place: Any, addresses: Any) -> Any:
    kept = np.zeros(len(refs), np.uint64)
    for i in range(len(refs)):
        left = bits[i]
        bucket = refs[i] >> np.uint64(32)
        row = (refs[i] & np.uint64(0xFFFFFFFF)) * np.uint64(8)
        loaded_word = -1
        word = np.uint64(0)
        leg = 0
        passed = np.uint64(0)
        while left:
            if left & np.uint64(1):
                at = place[leg, bucket]
                if at == -1:
                    passed |= np.uint64(1) << np.uint64(leg)
                elif at >= 0:
                    if at >> 6 != loaded_word:
                        loaded_word = at >> 6
                        word = load64(addresses[bucket, loaded_word] + row)
                    passed |= ((word >> np.uint64(at & 63)) & np.uint64(1)) << np.uint64(leg)
            left >>= np.uint64(1)
            leg += 1
        kept[i] = passed
    return kept


@njit(cache=True)
def _bounded(bits: Any, probe_idx: Any, times: Any, member_times: Any, lower: Any, upper: Any) -> None:
    for i in range(len(bits)):
        left = bits[i]
        if not left:
            continue
        for member in range(member_times.shape[0]):
            time = member_times[member, probe_idx[i]]
            is_unknown = time == NULL_TIME or times[i] == NULL_TIME
            apart = times[i] - time
            leg = 0
            remaining = left
            while remaining:
                if remaining & np.uint64(1):
                    low, high = lower[leg, member], upper[leg, member]
                    is_bound = low != NO_LOWER or high != NO_UPPER
                    if is_bound and (is_unknown or apart < low or apart > high):
                        left &= ~(np.uint64(1) << np.uint64(leg))
                remaining >>= np.uint64(1)
                leg += 1
        bits[i] = left


@njit(cache=True)
def _count_bits(bits: Any, leg_count: Any) -> Any:
    count = np.zeros(leg_count, np.int64)
    for i in range(len(bits)):
        left = bits[i]
        leg = 0
        while left:
            count[leg] += np.int64(left & np.uint64(1))
            left >>= np.uint64(1)
            leg += 1
    return count


@njit(cache=True)
def _rows_by_bit(bits: Any, begins: Any, size: Any) -> Any:
    rows = np.empty(size, np.int64)
    position = begins.copy()
    for i in range(len(bits)):
        left = bits[i]
        leg = 0
        while left:
            if left & np.uint64(1):
                rows[position[leg]] = i
                position[leg] += 1
            left >>= np.uint64(1)
            leg += 1
    return rows
