"""Matching a hop piece by piece: as many pairs as there is room for, and then whoever called may look at limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from dovetail.kernels.match.match_hop import (
    CANDIDATES,
    SEGMENT,
    FoundPairs,
    RowArrays,
    Segments,
    Stored,
    from_the_first,
    make_scratch,
    match_hop,
    room_for_pairs,
)

U64 = npt.NDArray[np.uint64]
FEWEST_PAIRS = 1 << 12


def match_pieces(
    rows: RowArrays, segments: Segments, stored: Stored, void: U64, counts: Any, max_pairs: int
) -> Iterator[FoundPairs]:
    """At most `max_pairs` at once; a piece may be empty: then much was looked at. `counts[node]` goes up by what was.

    Between two pieces legs may become void, and rows lose bits.
    """
    most = max(min(max_pairs, CANDIDATES), 1)
    room = max(min(max_pairs, max(FEWEST_PAIRS, len(rows.codes))), most)
    buckets = stored.buckets.times.shape[1]
    scratch, at = make_scratch(len(rows.refs), buckets, most), from_the_first()
    while at[SEGMENT] < len(segments.node):
        found = room_for_pairs(room)
        count = int(match_hop(rows, segments, stored, void, at, scratch, counts, found))
        yield FoundPairs(found.row[:count], found.ref[:count], found.word[:count])
        room = max(min(max_pairs, 4 * room), most)
