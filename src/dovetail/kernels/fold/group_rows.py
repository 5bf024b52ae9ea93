"""Rows of equal keys get one number: grouping as GROUP BY means it, where NULL is a key like any other.

NaN equals NaN and -0.0 equals 0.0. Rows are told apart by a 64-bit code of their key, in one pass over a hash table;
then every row is compared with the first of its group, so that keys of equal code do not become one group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from dovetail.kernels.match.hash_keys import bytes_of, combine_words, hash_bytes, is_exact_type, words_of

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
_FIRST_SLOTS = 4096
_NULL_WORD = np.uint64(0x6E756C6C6E756C6C)


@dataclass(frozen=True)
class KeyColumn:
    """`words` depend on the value alone, wherever it is; rows have equal `identity` if and only if values are equal."""

    words: U64
    identity: I64
    is_exact: bool
    """Whether rows of equal words are of equal values."""


@dataclass(frozen=True)
class RowGroups:
    """`numbers[i]` is the group of row i; groups are numbered as they come, `first_rows` are where."""

    numbers: I64
    first_rows: I64

    @property
    def count(self) -> int:
        return len(self.first_rows)


def plain_key(column: pa.Array) -> pa.Array:
    """Equal keys as one value: 0.0 for -0.0, and one NaN."""
    if not pa.types.is_floating(column.type):
        return column
    values = np.asarray(column.fill_null(0.0)) + 0.0
    values[np.isnan(values)] = np.nan
    return pa.array(values, column.type, mask=np.asarray(column.is_null()) if column.null_count else None)


def key_column(column: pa.Array) -> KeyColumn:
    null_mask = np.asarray(column.is_null()) if column.null_count else None
    if is_exact_type(column.type) or pa.types.is_floating(column.type):
        words = words_of(column)
        if null_mask is None:
            return KeyColumn(words, words.view(np.int64), True)
        words = np.where(null_mask, _NULL_WORD, words)
        # A number may have the word of NULL: what is NULL must be told apart by something else.
        identity = words.view(np.int64) if not (words[~null_mask] == _NULL_WORD).any() else _encoded(column)
        return KeyColumn(words, identity, False)
    content, ends = bytes_of(column)
    words = hash_bytes(content, ends)
    if null_mask is not None:
        words[null_mask] = _NULL_WORD
    # Long texts are neither copied nor sorted: those of equal word are compared where they lie.
    identity, first_rows = _group_codes(words)
    if null_mask is not None:
        identity[null_mask] = -1
    is_right = _are_as_first(content, ends, identity, first_rows)
    return KeyColumn(words, identity if is_right else _encoded(column), False)


def _encoded(column: pa.Array) -> I64:
    """For each row the place of its value among the distinct ones; -1 for NULL."""
    return np.asarray(pc.dictionary_encode(column).indices.fill_null(-1)).astype(np.int64)


def codes_of_keys(columns: Sequence[KeyColumn], length: int) -> U64:
    """A code for each row, equal for equal keys; 0 for all where there is no key."""
    return combine_words([column.words for column in columns]) if columns else np.zeros(length, np.uint64)


def group_rows(codes: U64, columns: Sequence[KeyColumn]) -> RowGroups:
    """Rows of equal code and equal key together."""
    numbers, first_rows = _group_codes(codes)
    if not columns or (len(columns) == 1 and columns[0].is_exact):
        return RowGroups(numbers, first_rows)
    waiting = _differing(np.arange(len(codes)), numbers, first_rows, columns)
    while len(waiting):
        # Other keys of the same code: they make groups among themselves.
        others, firsts = _group_codes(codes[waiting])
        numbers[waiting] = others + len(first_rows)
        first_rows = np.concatenate([first_rows, waiting[firsts]])
        waiting = _differing(waiting, numbers, first_rows, columns)
        if not len(waiting):
            return _as_they_come(numbers, first_rows)
    return RowGroups(numbers, first_rows)


def _as_they_come(numbers: I64, first_rows: I64) -> RowGroups:
    order = np.argsort(first_rows)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return RowGroups(place[numbers], first_rows[order])


def _differing(rows: I64, numbers: I64, first_rows: I64, columns: Sequence[KeyColumn]) -> I64:
    """Which of the rows have another key than the first row of their group."""
    differ = np.zeros(len(rows), np.bool_)
    for column in columns:
        _differs(column.identity, rows, numbers, first_rows, differ)
    return rows[differ]


def _group_codes(codes: U64) -> tuple[I64, I64]:
    """Groups of equal codes: number of each row, first row of each group."""
    numbers = np.empty(len(codes), np.int64)
    first_rows = np.empty(0, np.int64)
    size, row, count = _FIRST_SLOTS, 0, 0
    while True:
        first_rows = np.concatenate([first_rows, np.empty(size // 2 - count, np.int64)])
        row, count = _fill(codes, first_rows, numbers, size, row, count)
        if row == len(codes):
            return numbers, first_rows[:count].copy()
        size *= 8


@njit(cache=True)
def _fill(codes: Any, first_rows: Any, numbers: Any, size: int, row: int, count: int) -> tuple[int, int]:
    """Number rows from `row` on until the table of `size` slots is half full: the row to go on with, the groups."""
    # Unsigned slots: signed ones would be checked for being negative.
    mask, one = np.uint64(size - 1), np.uint64(1)
    known_codes, known_numbers = np.zeros(size, np.uint64), np.zeros(size, np.int64)
    for number in range(count):
        slot = codes[first_rows[number]] & mask
        while known_numbers[slot] != 0:
            slot = (slot + one) & mask
        known_codes[slot] = codes[first_rows[number]]
        known_numbers[slot] = number + 1
    while row < len(codes):
        code = codes[row]
        slot = code & mask
        while True:
            number = known_numbers[slot]
            if number == 0 or known_codes[slot] == code:
                break
            slot = (slot + one) & mask
        if number == 0:
            if count == len(first_rows):
                break
            first_rows[count] = row
            count += 1
            known_codes[slot] = code
            known_numbers[slot] = number = count
        numbers[row] = number - 1
        row += 1
    return row, count


@njit(cache=True)
def _differs(identity: Any, rows: Any, numbers: Any, first_rows: Any, differ: Any) -> None:
    for place in range(len(rows)):
        row = rows[place]
        if identity[first_rows[numbers[row]]] != identity[row]:
            differ[place] = True


@njit(cache=True)
def _are_as_first(content: Any, ends: Any, numbers: Any, first_rows: Any) -> bool:
    """Whether every row that has a number has the bytes of the first row of that number."""
    for row in range(len(numbers)):
        if numbers[row] < 0:
            continue
        first = first_rows[numbers[row]]
        if ends[first + 1] - ends[first] != ends[row + 1] - ends[row]:
            return False
        if first != row and not _are_equal(content, ends[first], ends[row], ends[row + 1] - ends[row]):
            return False
    return True


@njit(cache=True)
def _are_equal(content: Any, one: int, other: int, length: int) -> bool:
    # In blocks: a loop that may end at any place is not compiled to wide loads.
    block = 64
    for begin in range(0, length, block):
        differing = np.uint8(0)
        for place in range(begin, min(begin + block, length)):
            differing |= content[one + place] ^ content[other + place]
        if differing:
            return False
    return True
