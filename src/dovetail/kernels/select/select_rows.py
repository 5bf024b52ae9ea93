"""Many selections over the same rows, kept as bits: 64 selections a word (A4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from dovetail.kernels.word_bits import WORD_BITS, has_bit, word_count

Mask = npt.NDArray[np.bool_]
U64 = npt.NDArray[np.uint64]

_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class SelectionWords:
    """Bit `i % 64` of word `i // 64` says whether the row passes selection i, of `count` selections.

    Those that failed on some row pass none: nobody may take that for an answer.
    """

    words: tuple[U64, ...]
    count: int
    length: int
    failed: frozenset[int] = frozenset()

    def any(self) -> Mask:
        """The rows that some selection passes."""
        wanted: Mask = np.bitwise_or.reduce(self.words) != 0 if self.words else np.zeros(self.length, np.bool_)
        return wanted

    def mask(self, place: int) -> Mask:
        return has_bit(self.words[place // WORD_BITS], place)

    def take(self, rows: npt.NDArray[Any]) -> SelectionWords:
        """Of the rows under a mask, or at these positions."""
        words = tuple(word[rows] for word in self.words)
        length = int(np.count_nonzero(rows)) if rows.dtype == np.bool_ else len(rows)
        return SelectionWords(words, self.count, length, self.failed)

    def sample(self, rows: npt.NDArray[np.int64]) -> bytes:
        """These rows' bits, selection by selection without the failed, each in bytes of its own.

        Row i is bit `i % 8` of byte `i // 8`.
        """
        if not self.words:
            return b""
        by_row = np.stack([word[rows] for word in self.words]).view(np.uint8)
        bits = np.unpackbits(by_row, axis=1, bitorder="little").reshape(len(self.words), len(rows), -1)
        by_selection = bits.transpose(0, 2, 1).reshape(-1, len(rows))[: self.count]
        told = [place for place in range(self.count) if place not in self.failed]
        return np.packbits(by_selection[told], axis=1, bitorder="little").tobytes()


def no_selections(count: int, length: int) -> tuple[U64, ...]:
    """Words for so many selections of which none passes a row yet."""
    return tuple(np.zeros(length, np.uint64) for _ in range(word_count(count)))


def add_mask(words: Sequence[U64], place: int, mask: Mask) -> None:
    """The selection at `place` passes the rows under `mask`."""
    word, bit = divmod(place, WORD_BITS)
    _add_mask(words[word], mask, np.uint64(bit))


def spread_rows(length: int, count: int) -> npt.NDArray[np.int64]:
    """`count` of `length` rows (or all of fewer), the same ones each time: one in each of `count` equal stretches.

    Where in its stretch moves from one to the next: rows that come in turns must not be met in step.
    """
    if length <= count or count == 0:
        return np.arange(min(length, count))
    return (_places_in_stretches(count) * (length / count)).astype(np.int64)


@lru_cache(maxsize=16)
def _places_in_stretches(count: int) -> npt.NDArray[np.float64]:
    stretches = np.arange(count)
    return stretches + stretches * _GOLDEN % 1.0


def unpack_sample(packed: bytes, row_count: int) -> Mask:
    """The bits of `SelectionWords.sample` again, as `[selection, row]`."""
    packed_by_mask = np.frombuffer(packed, np.uint8).reshape(-1, -(-row_count // 8))
    return np.unpackbits(packed_by_mask, axis=1, count=row_count, bitorder="little").view(np.bool_)


def any_of(masks: Sequence[Mask], length: int) -> Mask:
    wanted = np.zeros(length, np.bool_)
    for mask in masks:
        wanted |= mask
    return wanted


@njit(cache=True)
def _add_mask(word: Any, mask: Any, bit: Any) -> None:
    for i in range(len(word)):
        word[i] |= np.uint64(mask[i]) << bit
