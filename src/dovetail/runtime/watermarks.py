"""How far each stream is once a batch's rows are known: nothing that comes later is older.

Tasks and driver come to the same: the tasks decide rows and close windows by it, and the driver lets go what they have
done with.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from dovetail.plan.watermarks import moved_watermarks
from dovetail.runtime.batch_task import BatchTask


def watermarks_after(task: BatchTask, times: Iterable[bytes]) -> dict[str, int]:
    """By stream, in microseconds; `times` are what the source tasks say of the newest event times."""
    newest: dict[str, int] = {}
    for payload in times:
        for stream, time_us in json.loads(payload).items():
            newest[stream] = max(time_us, newest.get(stream, time_us))
    return moved_watermarks((dict(task.late_before_us), dict(task.decided_before_us)), task.streams, newest)
