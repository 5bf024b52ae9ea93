"""Many selections over the same rows, kept as bits: 64 selections a word (A4)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
U64 = npt.NDArray[np.uint64]

BITS_PER_WORD = 64
_GOLDEN = (5**0.5 - 1) / 2


def pack_masks(masks: Sequence[Mask], length: int) -> tuple[U64, ...]:
    """Bit `i % 64` of word `i // 64` says whether the row passes mask i."""
    words = [np.zeros(length, np.uint64) for _ in range((len(masks) + 63) // 64)]
    for place, mask in enumerate(masks):
        words[place // 64] |= mask.astype(np.uint64) << np.uint64(place % 64)
    return tuple(words)


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


def pack_sample(masks: Sequence[Mask], rows: npt.NDArray[np.int64]) -> bytes:
    """These rows' bits, mask by mask, each in bytes of its own: row i is bit `i % 8` of byte `i // 8`."""
    sampled = np.empty((len(masks), len(rows)), np.bool_)
    for place, mask in enumerate(masks):
        mask.take(rows, out=sampled[place], mode="clip")
    return np.packbits(sampled, axis=1, bitorder="little").tobytes()


def unpack_sample(packed: bytes, row_count: int) -> Mask:
    """`pack_sample`'s bits again, as `[mask, row]`."""
    packed_by_mask = np.frombuffer(packed, np.uint8).reshape(-1, -(-row_count // 8))
    return np.unpackbits(packed_by_mask, axis=1, count=row_count, bitorder="little").view(np.bool_)


def any_of(masks: Sequence[Mask], length: int) -> Mask:
    wanted = np.zeros(length, np.bool_)
    for mask in masks:
        wanted |= mask
    return wanted
