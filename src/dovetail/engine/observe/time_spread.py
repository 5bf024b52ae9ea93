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
F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TimeSpread:
    """The buckets of a list that have event times, as arrays, one entry a bucket."""

    begins: F64
    ends: F64
    rows: F64

    @staticmethod
    def of(metas: Iterable[BucketMeta]) -> TimeSpread:
        timed = [meta for meta in metas if meta.min_time_us is not None]
        # Microseconds are whole: a bucket of one moment is one microsecond long.
        return TimeSpread(
            np.array([meta.min_time_us for meta in timed], np.float64),
            np.array([meta.max_time_us for meta in timed], np.float64) + 1,
            np.array([meta.home_rows for meta in timed], np.float64),
        )

    @cached_property
    def rows_per_us(self) -> F64:
        return self.rows / (self.ends - self.begins)

    @cached_property
    def points(self) -> F64:
        """Moments that stand for the rows, equally many in each bucket."""
        spacing = np.linspace(0, 1, _POINTS_A_BUCKET)[:, None]
        return (self.begins + spacing * (self.ends - 1 - self.begins)).ravel()

    @cached_property
    def weights(self) -> F64:
        """How much each of the `points` counts; together 1."""
        return np.tile(self.rows / (self.rows.sum() * _POINTS_A_BUCKET), _POINTS_A_BUCKET)


def visible_rows(new: TimeSpread, stored: TimeSpread, lower_us: float, upper_us: float) -> float:
    """How many stored rows a row of the new buckets has within the bounds, on average."""
    if not len(new.rows) or not len(stored.rows):
        return 0.0
    points = new.points[:, None]
    overlaps = np.minimum(stored.ends, points + (upper_us + 1)) - np.maximum(stored.begins, points + lower_us)
    return float(new.weights @ (np.maximum(overlaps, 0) @ stored.rows_per_us))
