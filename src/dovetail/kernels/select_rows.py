"""Many selections over the same rows, kept as bits: 64 selections a word (A4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
U64 = npt.NDArray[np.uint64]


def pack_masks(masks: Sequence[Mask], length: int) -> tuple[U64, ...]:
    """Bit `i % 64` of word `i // 64` says whether the row passes mask i."""
    words = [np.zeros(length, np.uint64) for _ in range((len(masks) + 63) // 64)]
    for place, mask in enumerate(masks):
        words[place // 64] |= mask.astype(np.uint64) << np.uint64(place % 64)
    return tuple(words)


def any_of(masks: Sequence[Mask], length: int) -> Mask:
    wanted = np.zeros(length, np.bool_)
    for mask in masks:
        wanted |= mask
    return wanted
