"""Of joins that no step of the plan takes: the chance that two rows meet, by a sample."""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.engine.observe.finished_batch import FinishedBatch
from dovetail.stats.figure import Figure, Kind, Tally


def sample_tallies(batch: FinishedBatch) -> Iterator[tuple[Figure, Tally]]:
    for sample in batch.report.samples:
        yield Figure(Kind.MATCH_SAMPLED, (sample.edge,)), Tally(sample.matches, sample.pairs, sample.relative_error)
