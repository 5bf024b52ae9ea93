"""Rows to bits and back: which of a node's legs want each row, 64 legs a word (A4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from dovetail.kernels.match.special_values import ALL_PASS, NONE_PASS
from dovetail.kernels.pointers import trailing_zeros
from dovetail.kernels.word_bits import WORD_BITS, has_bit, word_count

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


def no_bits(leg_count: int, row_count: int) -> U64:
    """A bit per leg and row, all unset: `bits[word, row]`."""
    return np.zeros((word_count(leg_count), row_count), np.uint64)


def bits_of_rows(places: Sequence[int], words_of: Callable[[int], U64], row_count: int) -> U64:
    """The legs whose selection each row passes; `words_of(n)` has the n-th word of every row's selection bits."""
    bits = no_bits(len(places), row_count)
    for leg, place in enumerate(places):
        word, bit = divmod(leg, WORD_BITS)
        if place == ALL_PASS:
            bits[word] |= np.uint64(1 << bit)
        elif place != NONE_PASS:
            _add_bit(bits[word], words_of(place // WORD_BITS), np.uint64(place % WORD_BITS), np.uint64(bit))
    return bits


def counts_of_legs(bits: U64, leg_count: int) -> list[int]:
    """For each leg how many rows have its bit."""
    found: list[int] = []
    for word in range(bits.shape[0]):
        found += _count_bits(bits[word], min(leg_count - word * WORD_BITS, WORD_BITS)).tolist()
    return found


def rows_of_leg(bits: U64, leg: int) -> I64:
    """The rows that have the leg's bit."""
    found: I64 = np.flatnonzero(has_bit(bits[leg // WORD_BITS], leg))
    return found


def rows_of_legs(bits: U64, leg_count: int) -> list[I64]:
    """For each leg the rows that have its bit."""
    rows_by_leg: list[I64] = []
    for word in range(bits.shape[0]):
        count = min(leg_count - word * WORD_BITS, WORD_BITS)
        ends = np.cumsum(_count_bits(bits[word], count))
        rows = _rows_by_bit(bits[word], ends - np.diff(ends, prepend=0), int(ends[-1]))
        rows_by_leg += np.split(rows, ends[:-1])
    return rows_by_leg


@njit(cache=True)
def _add_bit(bits: Any, words: Any, place: Any, leg: Any) -> None:
    for i in range(len(bits)):
        bits[i] |= ((words[i] >> place) & np.uint64(1)) << leg


@njit(cache=True)
def _count_bits(bits: Any, leg_count: Any) -> Any:
    count = np.zeros(leg_count, np.int64)
    for i in range(len(bits)):
        left = bits[i]
        while left:
            count[trailing_zeros(left)] += 1
            left &= left - np.uint64(1)
    return count


@njit(cache=True)
def _rows_by_bit(bits: Any, begins: Any, size: Any) -> Any:
    rows = np.empty(size, np.int64)
    position = begins.copy()
    for i in range(len(bits)):
        left = bits[i]
        while left:
            leg = trailing_zeros(left)
            rows[position[leg]] = i
            position[leg] += 1
            left &= left - np.uint64(1)
    return rows
