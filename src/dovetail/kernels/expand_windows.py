"""One row per (row, window) for tumbling and hopping windows, exactly as Spark's window() makes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dovetail.kernels.match.special_values import NULL_TIME

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class WindowRows:
    """`row_idx[i]` lies in [start_us[i], end_us[i]); rows without a time lie in none."""

    row_idx: I64
    start_us: I64
    end_us: I64


def expand_windows(times: I64, size_us: int, slide_us: int, offset_us: int) -> WindowRows:
    """All windows [offset + k * slide, ... + size) that hold each row's time.

    >>> rows = expand_windows(np.array([5]), size_us=4, slide_us=2, offset_us=0)
    >>> rows.start_us.tolist(), rows.end_us.tolist()
    ([4, 2], [8, 6])
    """
    known_idx = np.flatnonzero(times != NULL_TIME)
    known = times[known_idx]
    last_start = known - np.mod(known - offset_us, slide_us)
    count = -(-size_us // slide_us)
    starts = last_start[:, None] - np.arange(count, dtype=np.int64)[None, :] * slide_us
    inside = starts + size_us > known[:, None]
    row_idx = np.repeat(known_idx, count).reshape(len(known_idx), count)[inside]
    start_us = starts[inside]
    return WindowRows(row_idx, start_us, start_us + size_us)
