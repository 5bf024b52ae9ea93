"""Of indexes: how many rows a key has, which keys are frequent, how many there are."""

from __future__ import annotations

from dovetail.runtime.report import TaskReport
from dovetail.stats.key_sketch import KeySketch
from dovetail.stats.key_stats import KeysSeen
from dovetail.stats.observed import IndexName


def keys_seen(report: TaskReport) -> dict[IndexName, KeysSeen]:
    seen: dict[IndexName, KeysSeen] = {}
    for count in report.keys:
        name = (count.store, count.index)
        keys = KeysSeen(
            count.rows,
            tuple(count.rows_by_group),
            dict(zip(count.heavy_codes, count.heavy_rows, strict=True)),
            KeySketch(tuple(count.smallest_codes)),
        )
        seen[name] = seen[name] + keys if name in seen else keys
    return seen
