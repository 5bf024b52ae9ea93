"""Rows in flight at the nodes of the first hop: entries of new buckets, with the legs that select each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from dovetail.kernels.match.match_hop import RowArrays
from dovetail.kernels.match.special_values import ALL_PASS
from dovetail.kernels.pointers import load32, load64, trailing_zeros


class Starts(NamedTuple):
    """A node starts from entries of one bucket of a store, those of rows [lower_row, upper_row).

    `codes` and `rows` are addresses; of what lies there [begin, end) count.
    """

    node: Any
    store: Any
    bucket: Any
    lower_row: Any
    upper_row: Any
    codes: Any
    rows: Any
    begin: Any
    end: Any


def start_rows(starts: Starts, nodes: Any, buckets: Any, places: Any) -> tuple[RowArrays, Any, Any]:
    """Only rows that some leg wants; where those of each start end, and how many entries each looked at."""
    entries = int((starts.end - starts.begin).sum())
    rows = RowArrays(np.empty(entries, np.uint64), np.empty(entries, np.uint64), np.empty((1, entries), np.uint64))
    ends, looked = np.empty(len(starts.node), np.int64), np.empty(len(starts.node), np.int64)
    count = int(_start_rows(starts, nodes, buckets, places, rows, ends, looked))
    return RowArrays(rows.codes[:count], rows.words[:count], rows.refs[:, :count]), ends, looked


@njit(cache=True)
def _start_rows(starts: Any, nodes: Any, buckets: Any, places: Any, rows: Any, ends: Any, looked: Any) -> Any:
    count = np.uint64(0)
    place_of_bit = np.empty(64, np.int64)
    for start in range(len(starts.node)):
        node, store, bucket = starts.node[start], starts.store[start], starts.bucket[start]
        entry_codes, entry_rows = np.uint64(starts.codes[start]), np.uint64(starts.rows[start])
        lower, upper = np.uint64(starts.lower_row[start]), np.uint64(starts.upper_row[start])
        passing, tested = np.uint64(0), np.uint64(0)
        for leg in range(nodes.leg_begin[node], nodes.leg_begin[node + 1]):
            bit = nodes.leg_bit[leg]
            place = places[nodes.leg_start_ask[leg], bucket]
            place_of_bit[bit] = place
            passing |= np.uint64(place == ALL_PASS) << bit
            tested |= np.uint64(place >= 0) << bit
        looks = 0
        for entry in range(np.uint64(starts.begin[start]), np.uint64(starts.end[start])):
            row = np.uint64(load32(entry_rows + entry * np.uint64(4)))
            if row < lower or row >= upper:
                continue
            looks += 1
            word, left = passing, tested
            loaded, selected = np.int64(-1), np.uint64(0)
            while left:
                bit = trailing_zeros(left)
                left &= left - np.uint64(1)
                place = place_of_bit[bit]
                if place >> 6 != loaded:
                    loaded = place >> 6
                    begin, stride = buckets.words[store, bucket, loaded, 0], buckets.words[store, bucket, loaded, 1]
                    selected = load64(begin + row * stride)
                word |= ((selected >> np.uint64(place & 63)) & np.uint64(1)) << bit
            rows.codes[count] = load64(entry_codes + entry * np.uint64(8))
            rows.words[count] = word
            rows.refs[0, count] = (np.uint64(bucket) << np.uint64(32)) | row
            count += np.uint64(word != np.uint64(0))
        ends[start] = count
        looked[start] = looks
    return count
