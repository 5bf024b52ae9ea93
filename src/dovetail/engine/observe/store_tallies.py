"""Of stores: which share of the rows a selection passes, how many rows are kept, how many of a stream are alive."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from dovetail.engine.observe.finished_batch import FinishedBatch
from dovetail.plan.store_plan import StorePlan
from dovetail.stats.figure import Figure, Kind, Tally
from dovetail.store.bucket_file import by_store


def store_tallies(batch: FinishedBatch) -> Iterator[tuple[Figure, Tally]]:
    live = by_store(batch.after.buckets)
    for count in batch.report.selections:
        yield Figure(Kind.SELECTION, (count.store, count.selection)), Tally(count.passed_rows, count.rows)
    live_by_stream: dict[str, Tally] = {}
    for store in batch.plan.stores:
        stored_rows = sum(meta.home_rows for meta in live.get(store.id, []))
        yield Figure(Kind.STORED_ROWS, (store.id,)), Tally(stored_rows, 1)
        kept_share = _kept_share(batch, store)
        if store.stream in batch.streams and kept_share:
            copies = store.hop_window.size_us / store.hop_window.slide_us if store.hop_window else 1.0
            # The share kept now stands for the share kept of older rows too.
            error = 2 * math.sqrt((1 - kept_share) / stored_rows) if stored_rows else 0.0
            live_rows = Tally(stored_rows / kept_share / copies, 1, error)
            live_by_stream[store.stream] = max(
                live_rows, live_by_stream.get(store.stream, live_rows), key=lambda tally: tally.part
            )
    for stream, live_rows in live_by_stream.items():
        yield Figure(Kind.LIVE_ROWS, (stream,)), live_rows


def _kept_share(batch: FinishedBatch, store: StorePlan) -> float:
    """Of the rows that came, those that some query wants; 0 if that is not known."""
    if store.keeps_all:
        return 1.0
    came_by_selection: Counter[str] = Counter()
    for count in batch.report.selections:
        if count.store == store.id:
            came_by_selection[count.selection] += count.rows
    # A selection that failed in some task has not counted the rows there.
    came = max(came_by_selection.values(), default=0)
    return min(sum(meta.home_rows for meta in batch.written_by_store.get(store.id, [])) / came, 1.0) if came else 0.0
