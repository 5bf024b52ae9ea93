"""How far each stream is once a batch's rows are known: nothing that comes later is older."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dovetail.query.stream import Stream


def watermarks_after(
    earlier: Iterable[Mapping[str, int]], streams: Iterable[Stream], newest_times_us: Mapping[str, int]
) -> dict[str, int]:
    """By stream, in microseconds; never below one of the `earlier` watermarks.

    Tasks and driver come to the same: the tasks decide rows by it, and the driver lets go what they decided.
    """
    latenesses = {stream.name: stream.lateness_us for stream in streams}
    reached = {name: time_us - latenesses[name] for name, time_us in newest_times_us.items() if name in latenesses}
    after: dict[str, int] = {}
    for watermarks in (*earlier, reached):
        for name, watermark_us in watermarks.items():
            after[name] = max(watermark_us, after.get(name, watermark_us))
    return after
