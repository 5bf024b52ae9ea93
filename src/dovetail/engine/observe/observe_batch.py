"""From what tasks counted to figures with names: what one finished batch says of streams, selections and joins."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dovetail.engine.observe.finished_batch import FinishedBatch
from dovetail.engine.observe.key_groups_seen import key_groups_seen
from dovetail.engine.observe.keys_seen import keys_seen
from dovetail.engine.observe.rows_sampled import rows_sampled
from dovetail.engine.observe.sample_tallies import sample_tallies
from dovetail.engine.observe.step_tallies import step_tallies
from dovetail.engine.observe.store_tallies import store_tallies
from dovetail.engine.observe.stream_tallies import stream_tallies
from dovetail.stats.figure import Figure, Tally
from dovetail.stats.observed import BatchSeen
from dovetail.store.bucket_file import by_store

TALLIES: tuple[Callable[[FinishedBatch], Iterator[tuple[Figure, Tally]]], ...] = (
    stream_tallies,
    store_tallies,
    step_tallies,
    sample_tallies,
)
"""A new figure is a new entry here; the same figure from two of them is summed."""


def observe_batch(batch: FinishedBatch, *, tallies: bool = True) -> BatchSeen:
    return BatchSeen(
        batch.after.batch,
        _tallies(batch) if tallies else None,
        keys_seen(batch.report),
        {store: min(meta.lower_batch for meta in metas) for store, metas in by_store(batch.after.buckets).items()},
        rows_sampled(batch),
        key_groups_seen(batch.report, batch.after.batch),
    )


def _tallies(batch: FinishedBatch) -> dict[Figure, Tally]:
    found: dict[Figure, Tally] = {}
    for tallied in TALLIES:
        for figure, tally in tallied(batch):
            found[figure] = found[figure] + tally if figure in found else tally
    return found
