"""Join keys as 64-bit codes: equal keys have equal codes, and sorting by code groups rows by key group.

A single integer-like key is mixed by a bijection, so equal codes mean equal keys (`is_exact`). Any other
key (strings, decimals, several columns) is hashed: equal codes must be confirmed on the real values.
The key group of a row is the top bits of its code, so an index sorted by code is sorted by key group too.
A key of several columns may be *placed* by one of them: its key group is then that of the column alone, and what is
left of the code tells the keys of the group apart.
A row with a NULL in its key equals nothing and is left out by the caller through `valid_mask`.
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

U64 = npt.NDArray[np.uint64]

PLACING_BITS = 16
"""So many bits of a code come from the column that places its key: more than key groups ever have."""

_EXACT_KINDS = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_date, pa.types.is_timestamp)


@dataclass(frozen=True)
class KeyCodes:
    """`valid_mask` is None when no key is NULL."""

    codes: U64
    valid_mask: npt.NDArray[np.bool_] | None
    is_exact: bool


def concat_codes(pieces: Sequence[KeyCodes]) -> KeyCodes:
    """Of rows one piece after the other; their keys are of the same types."""
    valid = None
    if any(piece.valid_mask is not None for piece in pieces):
        masks = (np.ones(len(p.codes), np.bool_) if p.valid_mask is None else p.valid_mask for p in pieces)
        valid = np.concatenate(list(masks))
    return KeyCodes(np.concatenate([piece.codes for piece in pieces]), valid, pieces[0].is_exact)


def hash_keys(key_columns: list[pa.Array], placing: int | None = None) -> KeyCodes:
    """The codes of rows whose key is made of these columns, placed by the one at `placing` or by all of them."""
    is_exact = len(key_columns) == 1 and is_exact_type(key_columns[0].type)
    words = [words_of(column) for column in key_columns]
    codes = combine_words(words)
    if placing is not None:
        codes = _placed(codes, words[placing])
    return KeyCodes(codes, _valid_mask(key_columns), is_exact)


def combine_words(words_by_column: list[U64]) -> U64:
    """One code for each row from a word for each of its key's columns."""
    codes: U64 | None = None
    for words in words_by_column:
        codes = _mix(words) if codes is None else _combine(codes, words)
    if codes is None:
        raise ValueError("a key needs a column")
    return codes


def spread_codes(placed_codes: U64) -> U64:
    """Codes of placed keys with the bits of the whole key first: as evenly spread as codes of other keys."""
    spread: U64 = (placed_codes << np.uint64(PLACING_BITS)) | (placed_codes >> np.uint64(64 - PLACING_BITS))
    return spread


def is_exact_type(arrow_type: pa.DataType) -> bool:
    """Whether codes of one column of this type are equal only for equal values."""
    return any(is_kind(arrow_type) for is_kind in _EXACT_KINDS)


@dataclass(frozen=True)
class CodeRange:
    """Codes from `lower` to below `upper`; the upper end of all codes is 2**64, which no code reaches."""

    lower: int
    upper: int

    def slice_of(self, codes: U64) -> slice:
        """Where ascending codes lie in the range."""
        begin = int(np.searchsorted(codes, np.uint64(self.lower))) if self.lower else 0
        end = int(np.searchsorted(codes, np.uint64(self.upper))) if self.upper < 1 << 64 else len(codes)
        return slice(begin, end)


def codes_of_groups(lower_group: int, upper_group: int, group_count: int) -> CodeRange:
    """The codes of the key groups from `lower_group` to below `upper_group`."""
    bits = group_count.bit_length() - 1
    return CodeRange(lower_group << (64 - bits), upper_group << (64 - bits))


def group_of_codes(codes: U64, group_count: int) -> npt.NDArray[np.int64]:
    """The key group of each code; `group_count` is a power of two."""
    bits = group_count.bit_length() - 1
    if bits == 0:
        return np.zeros(len(codes), np.int64)
    return (codes >> np.uint64(64 - bits)).astype(np.int64)


def _valid_mask(columns: list[pa.Array]) -> npt.NDArray[np.bool_] | None:
    mask: npt.NDArray[np.bool_] | None = None
    for column in columns:
        if column.null_count:
            valid = np.asarray(pc.is_valid(column))
            mask = valid if mask is None else mask & valid
    return mask


def words_of(column: pa.Array) -> U64:
    """One 64-bit word per value, equal for values that SQL calls equal; NULLs get any word."""
    kind = column.type
    if pa.types.is_boolean(kind):
        return np.asarray(column.cast(pa.uint8()).fill_null(0)).astype(np.uint64)
    if pa.types.is_date32(kind):
        column = column.view(pa.int32())
    elif pa.types.is_timestamp(kind):
        column = column.view(pa.int64())
    elif pa.types.is_floating(kind):
        return _float_words(column)
    elif pa.types.is_decimal(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return hash_bytes(*bytes_of(column))
    return _numpy_of(column).astype(np.int64, copy=False).view(np.uint64)


def _numpy_of(column: pa.Array) -> npt.NDArray[Any]:
    """The value buffer as it is, NULL slots included: fill_null would copy."""
    width = column.type.bit_width // 8
    start = column.offset * width
    values = column.buffers()[1]
    if values is None:
        return np.zeros(len(column), column.type.to_pandas_dtype())
    return np.frombuffer(values, np.uint8, len(column) * width, start).view(column.type.to_pandas_dtype())


def _float_words(column: pa.Array) -> U64:
    values = np.asarray(column.cast(pa.float64()).fill_null(0.0)).copy()
    # Spark's join equality: -0.0 equals 0.0, and NaN equals NaN whatever its bits.
    values[values == 0.0] = 0.0
    values[np.isnan(values)] = np.nan
    return values.view(np.uint64)


def bytes_of(column: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """The bytes of decimals or texts, those of NULLs included, and where each begins; the last entry is the end."""
    return _fixed_bytes(column) if pa.types.is_decimal(column.type) else _string_bytes(column)


def _fixed_bytes(column: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    width = column.type.bit_width // 8
    values = column.buffers()[1]
    if values is None:
        return np.zeros(0, np.uint8), np.zeros(len(column) + 1, np.int64)
    offsets = (np.arange(len(column) + 1, dtype=np.int64) + column.offset) * width
    return np.frombuffer(values, np.uint8), offsets


def _string_bytes(column: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    wide = column.cast(pa.large_string())
    _, offsets_buffer, values_buffer = wide.buffers()
    if offsets_buffer is None or len(wide) == 0:
        return np.zeros(0, np.uint8), np.zeros(len(wide) + 1, np.int64)
    offsets = np.frombuffer(offsets_buffer, np.int64)[wide.offset : wide.offset + len(wide) + 1]
    values = np.frombuffer(values_buffer, np.uint8) if values_buffer is not None else np.zeros(0, np.uint8)
    return values, offsets


@njit(cache=True)
def _mix_word(word: Any) -> Any:
    word = (word ^ (word >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    word = (word ^ (word >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return word ^ (word >> np.uint64(33))


@njit(cache=True)
def _mix(words: Any) -> Any:
    mixed = np.empty(len(words), np.uint64)
    for i in range(len(words)):
        mixed[i] = _mix_word(words[i])
    return mixed


@njit(cache=True)
def _combine(codes: Any, words: Any) -> Any:
    combined = np.empty(len(words), np.uint64)
    for i in range(len(words)):
        combined[i] = _mix_word(codes[i] * np.uint64(0x9E3779B97F4A7C15) + _mix_word(words[i]))
    return combined


@njit(cache=True)
def _placed(codes: Any, words: Any) -> Any:
    placed = np.empty(len(words), np.uint64)
    for i in range(len(words)):
        group_bits = _mix_word(words[i]) >> np.uint64(64 - PLACING_BITS) << np.uint64(64 - PLACING_BITS)
        placed[i] = group_bits | (codes[i] >> np.uint64(PLACING_BITS))
    return placed


@njit(cache=True)
def hash_bytes(values: Any, offsets: Any) -> U64:
    words = np.empty(len(offsets) - 1, np.uint64)
    for i in range(len(offsets) - 1):
        start, stop = np.uint64(offsets[i]), np.uint64(offsets[i + 1])
        word = stop - start
        while stop - start >= np.uint64(8):
            word = _mix_word(word ^ _eight_bytes(values, start))
            start += np.uint64(8)
        chunk = np.uint64(0)
        for j in range(start, stop):
            chunk = (chunk << np.uint64(8)) | np.uint64(values[j])
        words[i] = _mix_word(word ^ chunk)
    return words


@njit(cache=True)
def _eight_bytes(values: Any, start: Any) -> Any:
    """The first one highest. Written out, the compiler makes one load of it."""
    chunk = np.uint64(values[start]) << np.uint64(56)
    chunk |= np.uint64(values[start + np.uint64(1)]) << np.uint64(48)
    chunk |= np.uint64(values[start + np.uint64(2)]) << np.uint64(40)
    chunk |= np.uint64(values[start + np.uint64(3)]) << np.uint64(32)
    chunk |= np.uint64(values[start + np.uint64(4)]) << np.uint64(24)
    chunk |= np.uint64(values[start + np.uint64(5)]) << np.uint64(16)
    chunk |= np.uint64(values[start + np.uint64(6)]) << np.uint64(8)
    return chunk | np.uint64(values[start + np.uint64(7)])
