"""Wall-clock times of a zone and back, as Java does it.

Arrow reads the transitions that the zone files list, which end in 2037, and cannot move a time out
of a gap the way Java does. Those few rows go through Python's zoneinfo, which knows the rules.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.kernels.evaluate.rows import Value, from_numbers, numbers, valid_mask
from dovetail.query.time_text import has_offset, instant_us, local_us, zone_of

_LAST_LISTED_US = 2_114_380_800_000_000  # 2037-01-01


def micros_of(value: Value) -> Value:
    """Dates, times and intervals as the integers they are stored as."""
    return pc.cast(value, pa.int64())


def to_local(value: Value, timezone: str) -> Value:
    """A timestamp as the wall clock of the session shows it, without a zone."""
    if value.type.tz is None:
        return value
    if not has_offset(timezone):
        return pc.cast(micros_of(value), pa.timestamp("us"))
    zone = zone_of(timezone)

    return _corrected(pc.local_timestamp(value), value, lambda instant: local_us(instant, zone), pa.timestamp("us"))


def from_local(value: Value, timezone: str) -> Value:
    """The instant of a wall-clock time: the earlier of two; in a gap, as far behind its start as the clock is."""
    target = pa.timestamp("us", tz=timezone)
    if not has_offset(timezone):
        return pc.cast(micros_of(value), target)
    zone = zone_of(timezone)

    def instant(local: int) -> int:
        return instant_us(local, zone)

    try:
        listed = pc.assume_timezone(value, timezone, ambiguous="earliest", nonexistent="raise")
    except pa.ArrowInvalid:
        listed = pc.cast(micros_of(value), target)
        return _corrected(listed, value, instant, target, everywhere=True)
    return _corrected(listed, value, instant, target)


def from_moved_local(value: Value, origin: Value, timezone: str) -> Value:
    """The instant of a wall-clock time to which `origin` was moved: in a doubled hour with the offset that it had.

    So Java moves times: from the second of two equal hours one comes to the second, if there are two again.
    """
    target = pa.timestamp("us", tz=timezone)
    if not has_offset(timezone):
        return pc.cast(micros_of(value), target)
    offset = pc.subtract(micros_of(to_local(origin, timezone)), micros_of(origin))
    kept = pc.cast(pc.subtract(micros_of(value), offset), target)
    return pc.if_else(pc.equal(to_local(kept, timezone), value), kept, from_local(value, timezone))


def _corrected(
    listed: Value, source: Value, convert: Callable[[int], int], target: pa.DataType, *, everywhere: bool = False
) -> Value:
    """`listed`, with the rows that Arrow may get wrong computed from `source` one by one."""
    if isinstance(source, pa.Scalar):
        if not source.is_valid or (source.value < _LAST_LISTED_US and not everywhere):
            return listed
        return pc.cast(pa.scalar(convert(source.value)), target)
    micros, valid = numbers(source), valid_mask(source, len(source))
    doubtful = np.flatnonzero(valid & (everywhere | (micros >= _LAST_LISTED_US)))
    if not len(doubtful):
        return listed
    values = numbers(listed).copy()
    values[doubtful] = [convert(micro) for micro in micros[doubtful].tolist()]
    return from_numbers(values, target, valid)
