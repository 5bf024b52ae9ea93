"""Which legs want pairs that were found by ranges: by selection bits, by bounds of their own, and by nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from dovetail.kernels.match.special_values import ALL_PASS, NO_LOWER, NO_UPPER, NULL_TIME
from dovetail.kernels.pointers import load64, trailing_zeros


@njit(cache=True)
def wanting_legs(pair_idx: Any, rows: Any, probe_bits: Any, places: Any, word_addresses: Any) -> Any:
    """Of the legs that want the probe row, those whose selection the stored row passed."""
    bits = np.empty((probe_bits.shape[0], len(rows)), np.uint64)
    for word in range(probe_bits.shape[0]):
        for k in range(len(rows)):
            left = probe_bits[word, np.uint64(pair_idx[k])]
            kept = np.uint64(0)
            loaded_word = -1
            selected = np.uint64(0)
            while left:
                bit = trailing_zeros(left)
                left &= left - np.uint64(1)
                place = places[np.uint64(word * 64) + bit]
                passes = np.uint64(place == ALL_PASS)
                if place >= 0:
                    if place >> 6 != loaded_word:
                        loaded_word = place >> 6
                        begin, stride = word_addresses[loaded_word, 0], word_addresses[loaded_word, 1]
                        selected = load64(begin + np.uint64(rows[k]) * stride)
                    passes = (selected >> np.uint64(place & 63)) & np.uint64(1)
                kept |= passes << bit
            bits[word, k] = kept
    return bits


@njit(cache=True)
def hold_bounds(
    bits: Any, pair_idx: Any, rows: Any, member_times: Any, stored_times: Any, lower: Any, upper: Any
) -> None:
    """Take away the bits of legs whose own bounds do not hold."""
    for word in range(bits.shape[0]):
        for k in range(len(rows)):
            left = bits[word, k]
            kept = left
            time = stored_times[rows[k]]
            while left:
                bit = trailing_zeros(left)
                left &= left - np.uint64(1)
                leg = np.uint64(word * 64) + bit
                for member in range(lower.shape[1]):
                    low, high = lower[leg, member], upper[leg, member]
                    other = member_times[member, np.uint64(pair_idx[k])]
                    apart = time - other
                    holds = (time != NULL_TIME) & (other != NULL_TIME) & (apart >= low) & (apart <= high)
                    is_free = (low == NO_LOWER) & (high == NO_UPPER)
                    kept &= ~(np.uint64(not (holds or is_free)) << bit)
            bits[word, k] = kept


@njit(cache=True)
def with_bits(pair_idx: Any, rows: Any, bits: Any) -> Any:
    """Without the pairs that no leg wants any more."""
    count = np.uint64(0)
    for k in range(len(rows)):
        any_bits = np.uint64(0)
        pair_idx[count] = pair_idx[k]
        rows[count] = rows[k]
        for word in range(bits.shape[0]):
            any_bits |= bits[word, k]
            bits[word, count] = bits[word, k]
        count += np.uint64(any_bits != np.uint64(0))
    return pair_idx[:count], rows[:count], bits[:, :count]
