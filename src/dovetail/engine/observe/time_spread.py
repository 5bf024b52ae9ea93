"""When the rows of buckets happened, as if times lay evenly within a bucket, and how many of them a probe can see."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dovetail.store.bucket_file import BucketMeta

EVEN_TIMES_ERROR = 0.25
"""What the assumption of even times within a bucket may cost; batches are rarely more uneven than that."""

_POINTS_A_BUCKET = 8
_FARTHEST_US = 1 << 62
"""146,000 years before and after 1970: no two moments within are too far apart for 64 bits."""
F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TimeSpread:
    """The buckets of a list that have event times, as arrays, one entry a bucket.

    Moments stay whole numbers: beyond the years 1684 and 2255 a float has no place for single microseconds. Only
    differences become floats.
    """

    begins: I64
    lengths: F64
    rows: F64

    @staticmethod
    def of(metas: Iterable[BucketMeta]) -> TimeSpread:
        times = [(meta.min_time_us, meta.max_time_us, meta.home_rows) for meta in metas]
        timed = [(first, last, rows) for first, last, rows in times if first is not None and last is not None]
        # Microseconds are whole: a bucket of one moment is one microsecond long.
        return TimeSpread(
            np.array([min(max(first, -_FARTHEST_US), _FARTHEST_US) for first, _, _ in timed], np.int64),
            np.array([last - first + 1 for first, last, _ in timed], np.float64),
            np.array([rows for _, _, rows in timed], np.float64),
        )

    @cached_property
    def rows_per_us(self) -> F64:
        return self.rows / self.lengths

    @cached_property
    def point_begins(self) -> I64:
        """The begin of the bucket that each of the points is in."""
        return np.tile(self.begins, _POINTS_A_BUCKET)

    @cached_property
    def point_offsets(self) -> F64:
        """Moments that stand for the rows, equally many in each bucket, counted from its begin."""
        spacing = np.linspace(0, 1, _POINTS_A_BUCKET)[:, None]
        return (spacing * (self.lengths - 1)).ravel()

    @cached_property
    def weights(self) -> F64:
        """How much each of the points counts; together 1."""
        return np.tile(self.rows / (self.rows.sum() * _POINTS_A_BUCKET), _POINTS_A_BUCKET)


def visible_rows(new: TimeSpread, stored: TimeSpread, lower_us: float, upper_us: float) -> float:
    """How many stored rows a row of the new buckets has within the bounds, on average."""
    if not len(new.rows) or not len(stored.rows):
        return 0.0
    # Where each point is, counted from the begin of each stored bucket.
    points = (new.point_begins[:, None] - stored.begins) + new.point_offsets[:, None]
    overlaps = np.minimum(stored.lengths, points + (upper_us + 1)) - np.maximum(0, points + lower_us)
    return float(new.weights @ (np.maximum(overlaps, 0) @ stored.rows_per_us))
