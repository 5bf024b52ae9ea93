"""Of streams: rows a batch, rows per second of event time, the share that is late."""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.engine.observe.finished_batch import FinishedBatch
from dovetail.stats.figure import Figure, Kind, Tally


def stream_tallies(batch: FinishedBatch) -> Iterator[tuple[Figure, Tally]]:
    for name in batch.streams:
        counts = [count for count in batch.report.streams if count.stream == name]
        rows = sum(count.rows - count.bad_rows for count in counts)
        late_rows = sum(count.late_rows for count in counts)
        if not rows:
            continue
        yield Figure(Kind.BATCH_ROWS, (name,)), Tally(rows, 1)
        yield Figure(Kind.LATE_SHARE, (name,)), Tally(late_rows, rows)
        yield Figure(Kind.ROWS_PER_S, (name,)), Tally(rows - late_rows, _seconds_gained(batch, name))


def _seconds_gained(batch: FinishedBatch, stream: str) -> float:
    """By how much the stream's newest event time grew; the first batch gains all that it spans."""
    newest_us = batch.after.max_time_us_by_stream.get(stream)
    oldest_us = batch.before.max_time_us_by_stream.get(stream)
    if oldest_us is None:
        stores = [store.id for store in batch.of_streams() if store.stream == stream]
        times_us = [meta.min_time_us for store in stores for meta in batch.written_by_store.get(store, [])]
        oldest_us = min((time_us for time_us in times_us if time_us is not None), default=None)
    if newest_us is None or oldest_us is None:
        return 0.0
    return max(newest_us - oldest_us, 0) / 1e6
