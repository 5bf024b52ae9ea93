"""Which rows of a block meet entries of a bundle at all, and where those of their code begin.

What lies in a large bundle is far from the processor, and to wait for memory row after row takes longer than all else.
So a block goes three times over its rows: to send for the places that the directory has, to send for the entries there,
and to look at them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from dovetail.kernels.pointers import load32, load64, prefetch

_ONE = np.uint64(1)
_LAST_ENTRIES = np.uint64(8)


@njit(cache=True, forceinline=True)
def find_runs(codes: Any, stored: Any, here: Any, first_row: Any, scratch: Any) -> Any:
    """The rows from `first_row` on that can meet entries of a bundle, and the first entry of each row's code.

    They are left in `scratch`; how many there are.
    """
    tables, table, bundle = stored.tables, here.table, here.bundle
    entries, directory, shift = (
        tables.codes[table, bundle],
        tables.directory[table, bundle],
        tables.shift[table, bundle],
    )
    low, high, stride = tables.begin[table, bundle], tables.end[table, bundle], tables.stride[table, bundle]
    first_us, last_us = tables.first_us[table, bundle], tables.last_us[table, bundle]
    wanted = np.uint64(0)
    for i in range(np.uint64(first_row), np.uint64(here.end)):
        k = i - np.uint64(here.begin)
        scratch.run_row[wanted] = i
        prefetch(directory + (codes[i] >> shift) * np.uint64(4))
        is_near = (scratch.upper[k] >= first_us) & (scratch.lower[k] <= last_us)
        wanted += np.uint64((scratch.words[k] != np.uint64(0)) & is_near)
    for w in range(wanted):
        slot = directory + (codes[scratch.run_row[w]] >> shift) * np.uint64(4)
        left = max(np.uint64(load32(slot)), low)
        scratch.run_first[w] = left
        scratch.run_last[w] = min(np.uint64(load32(slot + np.uint64(4))), high)
        prefetch(entries + left * stride)
    runs = np.uint64(0)
    for w in range(wanted):
        i, left, last = scratch.run_row[w], scratch.run_first[w], scratch.run_last[w]
        code, right = codes[i], last
        while left + _LAST_ENTRIES < right:
            middle = (left + right) >> _ONE
            if load64(entries + middle * stride) < code:
                left = middle + _ONE
            else:
                right = middle
        while left < last and load64(entries + left * stride) < code:
            left += _ONE
        scratch.run_row[runs] = i
        scratch.run_first[runs] = left
        runs += np.uint64(left < last and load64(entries + left * stride) == code)
    return runs
