"""Times of far years, as the same times of nearer ones.

Arrow counts years in 16 bits: beyond 32,767 its fields and truncations are wrong. The calendar repeats itself every 400
years, weekdays included, and so do the rules of clocks, so whole cycles are taken away before Arrow is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dovetail.kernels.evaluate.rows import Numbers, Value, fail, from_numbers, numbers, valid_mask

_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
_FAR_DAYS = 50 * _CYCLE_DAYS
_DAY_US = 86_400_000_000


@dataclass(frozen=True)
class NearTimes:
    """An array of dates or timestamps, and how many cycles each was moved; None where all were near enough."""

    times: Value
    cycles: Numbers | None = None

    def true_years(self, years: Value) -> Value:
        """Of years of the near times, those of the true ones."""
        if self.cycles is None:
            return years
        true = numbers(years) + self.cycles * _CYCLE_YEARS
        return from_numbers(true.astype(np.int32), years.type, valid_mask(years, len(years)))

    def moved_back(self, times: Value) -> Value:
        """Timestamps that were made of the near ones, where the true ones are."""
        if self.cycles is None:
            return times
        valid = valid_mask(times, len(times))
        near, back = numbers(times), self.cycles * (_CYCLE_DAYS * _DAY_US)
        true = near + back
        # What leaves the range comes in again at its other end.
        if (valid & ((true < near) != (back < 0))).any():
            raise fail("timestamp overflow", "keep times within the years 1 to 9999")
        return from_numbers(true, times.type, valid)


def near_times(times: Value) -> NearTimes:
    unit = 1 if pa.types.is_date(times.type) else _DAY_US
    values = numbers(times)
    far = _FAR_DAYS * unit
    if not len(values) or (values.min() >= -far and values.max() <= far):
        return NearTimes(times)
    values = values.astype(np.int64)
    cycle = _CYCLE_DAYS * unit
    cycles = np.where(values < -far, (values + far) // cycle, np.where(values > far, -((far - values) // cycle), 0))
    near = (values - cycles * cycle).astype(numbers(times).dtype)
    return NearTimes(from_numbers(near, times.type, valid_mask(times, len(times))), cycles)
