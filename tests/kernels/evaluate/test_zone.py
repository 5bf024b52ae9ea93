"""Times that are moved or truncated into an hour that the clocks show twice, as Java does it."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from dovetail.frontend.compile_sql import compile_sql
from dovetail.kernels.evaluate.evaluate import evaluate
from dovetail.query.stream import Stream
from dovetail.query.types import TIMESTAMP

STREAMS = {"a": Stream("a", (("ts", TIMESTAMP),), "ts")}
MOVED = [
    # In Berlin it is 02:30 twice on 26 October 2025, at 00:30 and at 01:30 of UTC.
    ("Europe/Berlin", "date_trunc('HOUR', ts)", "2025-10-26T00:30", "2025-10-26T00:00"),
    ("Europe/Berlin", "date_trunc('HOUR', ts)", "2025-10-26T01:30", "2025-10-26T01:00"),
    ("Europe/Berlin", "date_trunc('MINUTE', ts)", "2025-10-26T01:30:05", "2025-10-26T01:30"),
    ("Europe/Berlin", "date_trunc('SECOND', ts)", "2025-10-26T01:30:05", "2025-10-26T01:30:05"),
    ("Europe/Berlin", "date_trunc('DAY', ts)", "2025-10-26T01:30", "2025-10-25T22:00"),
    ("Europe/Berlin", "date_trunc('HOUR', ts)", "2045-10-29T01:30", "2045-10-29T01:00"),
    # In Havana midnight comes twice: a day and a month begin with the one that has the offset of their moment.
    ("America/Havana", "date_trunc('DAY', ts)", "2025-11-02T04:30", "2025-11-02T04:00"),
    ("America/Havana", "date_trunc('DAY', ts)", "2025-11-02T05:30", "2025-11-02T05:00"),
    ("America/Havana", "date_trunc('DAY', ts)", "2025-11-02T15:00", "2025-11-02T05:00"),
    ("America/Havana", "date_trunc('MONTH', ts)", "2025-11-02T05:30", "2025-11-01T04:00"),
    ("America/Havana", "date_trunc('MONTH', ts)", "2026-11-21T15:00", "2026-11-01T05:00"),
    ("America/Havana", "date_trunc('MONTH', ts)", "2026-11-01T04:30", "2026-11-01T04:00"),
    # A day before or after, with the offset that it had if that is one of the two.
    ("Europe/Berlin", "ts - INTERVAL 1 DAY", "2025-10-27T01:30", "2025-10-26T01:30"),
    ("Europe/Berlin", "ts + INTERVAL 1 DAY", "2025-10-25T00:30", "2025-10-26T00:30"),
    ("Europe/Berlin", "ts - INTERVAL '1 01:00:00' DAY TO SECOND", "2025-10-27T01:30", "2025-10-26T00:30"),
    ("Europe/Berlin", "ts + INTERVAL 1 DAY", "2026-03-28T01:30", "2026-03-29T01:30"),
    ("Europe/Berlin", "ts - INTERVAL 1 DAY", "2026-03-30T00:30", "2026-03-29T01:30"),
    ("Pacific/Apia", "ts - INTERVAL 1 DAY", "2011-12-31T10:30", "2011-12-30T10:30"),
]


@pytest.mark.parametrize(("timezone", "item", "moment", "expected"), MOVED)
def test_a_moved_time_keeps_its_offset_where_it_can(timezone: str, item: str, moment: str, expected: str) -> None:
    query = compile_sql(f"SELECT {item} AS v FROM a", STREAMS, timezone=timezone)
    times = pa.array([utc(moment), None], pa.timestamp("us", tz="UTC"))
    found = evaluate(query.output[0].expression, lambda _: times, 2, timezone=timezone)
    assert found.cast(pa.timestamp("us", tz="UTC")).to_pylist() == [utc(expected), None]


def utc(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC)
