"""The smallest of any run of neighbours, without looking at each: minima of blocks, of blocks of blocks, and so on.

    keys       7 3 9 4 | 8 1 6 5 | 2 9 9 8        (blocks of 16, here of 4)
    level 1        1         5         8          the position of each block's smallest
    run            [. . | . . . . | .]            its rest left and right is looked at, whole blocks are not

Values of any type take part by a key, a number that is ordered as SQL orders them; what comes out is a position.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from dovetail.kernels.fold.fold_columns import ordered_floats
from dovetail.kernels.fold.fold_runs import Runs
from dovetail.kernels.match.order_values import order_values

I64 = npt.NDArray[np.int64]
_BLOCK_BITS = 4
_BLOCK = 1 << _BLOCK_BITS


@dataclass(frozen=True)
class Extremes:
    """`positions[begins[n]:begins[n + 1]]` are where the smallest key of each block of level n lies."""

    keys: I64
    positions: I64
    begins: I64


def order_keys(values: pa.Array, *, is_max: bool = False) -> I64:
    """Numbers ordered as `values` (none is NULL) are, the other way round for `is_max`.

    NaN is above all numbers, -0.0 just below 0.0.
    """
    kind = values.type
    if pa.types.is_decimal(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        # Too long for a number of their own: their rank is one.
        keys = np.empty(len(values), np.int64)
        keys[pc.sort_indices(values).to_numpy()] = np.arange(len(values))
    elif pa.types.is_floating(kind):
        keys = ordered_floats(values)
    else:
        keys = order_values(values).values
    return ~keys if is_max else keys


def find_extremes(keys: I64) -> Extremes:
    """See the module's head."""
    levels = [np.arange(len(keys))]
    while len(levels[-1]) > _BLOCK:
        levels.append(_smallest_of_blocks(keys, levels[-1]))
    return Extremes(keys, np.concatenate(levels), np.cumsum([0, *map(len, levels)]))


def extremes_of_runs(extremes: Extremes, runs: Runs) -> I64:
    """The position of each run's smallest key; -1 for an empty run."""
    found: I64 = _smallest_of_runs(extremes.keys, extremes.positions, extremes.begins, runs.begins, runs.ends)
    return found


@njit(cache=True)
def _smallest_of_blocks(keys: Any, positions: Any) -> Any:
    smallest = np.empty((len(positions) + _BLOCK - 1) // _BLOCK, np.int64)
    for block in range(len(smallest)):
        best = positions[block * _BLOCK]
        for i in range(block * _BLOCK + 1, min((block + 1) * _BLOCK, len(positions))):
            if keys[positions[i]] < keys[best]:
                best = positions[i]
        smallest[block] = best
    return smallest


@njit(cache=True)
def _smallest_of_runs(keys: Any, positions: Any, level_begins: Any, begins: Any, ends: Any) -> Any:
    found = np.empty(len(begins), np.int64)
    top = len(level_begins) - 2
    for run in range(len(begins)):
        i, end = begins[run], ends[run]
        if run and i == begins[run - 1] and end == ends[run - 1]:
            found[run] = found[run - 1]
            continue
        best = np.int64(-1)
        while i < end:
            level, bits = 0, 0
            # The largest whole block that begins here.
            while level < top and (i >> bits) & (_BLOCK - 1) == 0 and i + (_BLOCK << bits) <= end:
                level += 1
                bits += _BLOCK_BITS
            candidate = positions[level_begins[level] + (i >> bits)] if level else i
            if best < 0 or keys[candidate] < keys[best]:
                best = candidate
            i += 1 << bits
        found[run] = best
    return found
