"""How far streams are: nothing that comes later is older. Tasks and driver reckon alike, so it is part of the plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dovetail.query.stream import Stream


def moved_watermarks(
    earlier: Iterable[Mapping[str, int]], streams: Iterable[Stream], newest_times_us: Mapping[str, int]
) -> dict[str, int]:
    """The highest of the `earlier` watermarks and of those that the newest event times give."""
    latenesses = {stream.name: stream.lateness_us for stream in streams}
    reached = {name: time_us - latenesses[name] for name, time_us in newest_times_us.items() if name in latenesses}
    after: dict[str, int] = {}
    for watermarks in (*earlier, reached):
        for name, watermark_us in watermarks.items():
            after[name] = max(watermark_us, after.get(name, watermark_us))
    return after
