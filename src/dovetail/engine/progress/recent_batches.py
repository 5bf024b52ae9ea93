"""The figures of the last batches of this process: for rates by the clock, and for what EXPLAIN compares."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from statistics import median

from dovetail.engine.progress.figures import BatchFigures

REMEMBERED = 32
COMPARED = 8
"""Over how many of them rates and usual times are taken: the load may change."""


class RecentBatches:
    """Not durable: a restart begins anew."""

    def __init__(self) -> None:
        self._batches: deque[BatchFigures] = deque(maxlen=REMEMBERED)

    def note(self, figures: BatchFigures) -> None:
        """A batch may be told twice: with what went wrong in its telling.

        The steps of those before it, thousands if somebody asked for them, are forgotten, and counted again if need be.
        """
        if self._batches and self._batches[-1].batch == figures.batch:
            self._batches[-1] = figures
        else:
            if self._batches:
                self._batches[-1] = replace(self._batches[-1])
            self._batches.append(figures)

    @property
    def batches(self) -> tuple[BatchFigures, ...]:
        """The newest last."""
        return tuple(self._batches)

    @property
    def last(self) -> BatchFigures | None:
        return self._batches[-1] if self._batches else None

    def rated(self, figures: BatchFigures) -> BatchFigures:
        """A batch that is to be noted, with how fast rows came in the last batches.

        Without rates where there is no time between the two to count over.
        """
        batches = [*self.batches[1 - COMPARED :], figures]
        elapsed_s = figures.finished_at - batches[0].finished_at
        if elapsed_s <= 0:
            return figures
        streams = (
            replace(stream, rows_per_s=sum(batch.rows_of(stream.name) for batch in batches[1:]) / elapsed_s)
            for stream in figures.streams
        )
        return replace(figures, streams=tuple(streams))

    def rows_per_s(self, stream: str) -> float | None:
        """Of clock time."""
        found = () if self.last is None else self.last.streams
        return next((each.rows_per_s for each in found if each.name == stream), None)

    def usual_times(self) -> tuple[float, float] | None:
        """Seconds of a batch for reading rows and for joining them: medians over those that ran by the last plan."""
        # A copy: whoever explains does not wait for the batch that is noted meanwhile.
        batches = self.batches[-COMPARED:]
        same = [batch for batch in batches if batch.epoch == batches[-1].epoch]
        busy = [batch for batch in same if batch.input_rows]
        if not busy:
            return None
        return median(batch.source_s for batch in busy), median(batch.hop_s for batch in busy)
