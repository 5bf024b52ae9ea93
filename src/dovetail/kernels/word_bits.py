"""Many answers of yes or no for each row, 64 a word: bit `place % 64` of word `place // 64` is the one at `place`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dovetail.kernels.addresses import address_of

WORD_BITS = 64

Mask = npt.NDArray[np.bool_]
U64 = npt.NDArray[np.uint64]


def word_count(bit_count: int) -> int:
    """So many words hold so many bits.

    >>> word_count(0), word_count(64), word_count(65)
    (0, 1, 2)
    """
    return -(-bit_count // WORD_BITS)


def lie_at(word: U64) -> tuple[int, int]:
    """Where a word of the first row lies, and how many bytes further that of the next one; for compiled code."""
    return address_of(word), word.strides[0]


def bit_at(place: int) -> np.uint64:
    """The bit of `place`, alone in its word."""
    return np.uint64(1 << (place % WORD_BITS))


def has_bit(word: U64, place: int) -> Mask:
    """The rows that have the bit of `place`; `word` is the one that it lies in, of each row."""
    mask: Mask = word & bit_at(place) != 0
    return mask
