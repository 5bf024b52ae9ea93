"""How far each stream is once a batch's rows are known: nothing that comes later is older.

Tasks and driver come to the same: the tasks decide rows and close windows by it, and the driver lets go what they have
done with.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from dovetail.query.stream import Stream
from dovetail.runtime.batch_task import BatchTask


def watermarks_after(task: BatchTask, times: Iterable[bytes]) -> dict[str, int]:
    """By stream, in microseconds; `times` are what the source tasks say of the newest event times."""
    newest: dict[str, int] = {}
    for payload in times:
        for stream, time_us in json.loads(payload).items():
            newest[stream] = max(time_us, newest.get(stream, time_us))
    return moved_watermarks((dict(task.late_before_us), dict(task.decided_before_us)), task.streams, newest)


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
