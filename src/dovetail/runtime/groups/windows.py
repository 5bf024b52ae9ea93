"""Windows from panes: which windows that close now a pane is part of."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dovetail.plan.group_plan import Pane, UserWindow
from dovetail.runtime.groups.partial_groups import PartialGroups

I64 = npt.NDArray[np.int64]
BEGINNING = -(1 << 62)
"""Before every time: where nothing was closed yet."""


def in_closing_windows(
    rows: PartialGroups,
    pane: Pane,
    window: UserWindow,
    closing: tuple[int, int],
    may_make: Callable[[int], bool],
) -> PartialGroups | None:
    """A row for each window that a row's pane is in and that ends after the first time, at the latest at the second.

    The pane of such a row is the start of the window. None if `may_make` forbids so many: a day that slides by a
    millisecond has each row in millions of windows.
    """
    after_us, until_us = closing
    if rows.panes is None:
        raise ValueError("windows are made of panes")
    lower = np.maximum(rows.panes + pane.width_us - window.size_us, after_us - window.size_us + 1)
    upper = np.minimum(rows.panes, until_us - window.size_us)
    if window.offset_us is None:
        idx = np.flatnonzero((lower <= rows.panes) & (upper >= rows.panes))
        return rows.take(idx)
    first = lower + (window.offset_us - lower) % window.slide_us
    counts = np.maximum((upper - first) // window.slide_us + 1, 0)
    if not may_make(int(counts.sum())):
        return None
    idx = np.repeat(np.arange(rows.rows), counts)
    steps = np.arange(len(idx)) - np.repeat(np.cumsum(counts) - counts, counts)
    found = rows.take(idx)
    return PartialGroups(found.keys, first[idx] + steps * window.slide_us, found.columns, found.rows)
