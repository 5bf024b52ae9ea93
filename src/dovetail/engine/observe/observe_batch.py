"""From what tasks counted to figures with names: what one finished batch says of streams, selections and joins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from dovetail.engine.observe.attempted import attempted
from dovetail.engine.observe.finished_batch import FinishedBatch
from dovetail.engine.observe.key_groups_seen import key_groups_seen
from dovetail.engine.observe.keys_seen import keys_seen
from dovetail.engine.observe.rows_sampled import rows_sampled
from dovetail.engine.observe.sample_tallies import sample_tallies
from dovetail.engine.observe.step_tallies import step_tallies
from dovetail.engine.observe.store_tallies import store_tallies
from dovetail.engine.observe.stream_tallies import stream_tallies
from dovetail.stats.figure import Figure, Tally
from dovetail.stats.observed import BatchSeen, ObservedStats
from dovetail.store.bucket_file import by_store

Tallied = Callable[[FinishedBatch], Iterator[tuple[Figure, Tally]]]
TALLIES: Mapping[str, Tallied] = {
    "streams": stream_tallies,
    "stores": store_tallies,
    "steps": step_tallies,
    "samples": sample_tallies,
}
"""A new figure is a new entry here; the same figure from two of them is summed."""


def learn(known: ObservedStats, batch: FinishedBatch, *, tallies: bool) -> ObservedStats:
    """What is known after the batch. Statistics are advice: where one cannot be had, nothing of it is learned."""
    return attempted("a whole batch", lambda: known.folded(observe_batch(batch, tallies=tallies)), known)


def observe_batch(batch: FinishedBatch, *, tallies: bool = True) -> BatchSeen:
    return BatchSeen(
        batch.after.batch,
        _tallies(batch) if tallies else None,
        attempted("keys", lambda: keys_seen(batch.report), {}),
        {store: min(meta.lower_batch for meta in metas) for store, metas in by_store(batch.after.buckets).items()},
        attempted("sampled rows", lambda: rows_sampled(batch), {}),
        attempted("key groups", lambda: key_groups_seen(batch.report, batch.after.batch), {}),
    )


def _tallies(batch: FinishedBatch) -> dict[Figure, Tally]:
    found: dict[Figure, Tally] = {}
    for what, tallied in TALLIES.items():
        nothing: list[tuple[Figure, Tally]] = []
        for figure, tally in attempted(what, partial(_listed, tallied, batch), nothing):
            found[figure] = found[figure] + tally if figure in found else tally
    return found


def _listed(tallied: Tallied, batch: FinishedBatch) -> list[tuple[Figure, Tally]]:
    return list(tallied(batch))
