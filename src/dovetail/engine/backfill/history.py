"""The past of a session's streams, as far as their sources can give it again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Protocol

from dovetail.query.stream import Stream
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.message import Message
from dovetail.store.manifest import Arrival, PastBatch, read_manifest


class History(Protocol):
    """Reads old rows again. The engine asks from one thread at a time."""

    def check(self, streams: Collection[str]) -> None:
        """Raise HistoryError if the rows of one of these streams come only once."""

    def run(self, task: BatchTask, past: tuple[PastBatch, ...]) -> list[Message]:
        """Run the task over the rows of these batches, each with the number of its batch in the column `BATCH`.

        Raises HistoryError where rows are gone.
        """


class Arrivals:
    """How the rows of committed batches came in, from their manifests."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[int, Arrival] = {}

    def of(self, batch: int) -> Arrival:
        if batch not in self._known:
            self._known[batch] = read_manifest(self._root, batch).arrival
        return self._known[batch]

    def past(self, batch: int) -> PastBatch:
        return PastBatch(batch, self.of(batch), self.of(batch - 1) if batch else Arrival())

    def widest_lateness_us(self, streams: Mapping[str, Stream], upto_batch: int) -> dict[str, int]:
        """By stream, the largest lateness of any batch: it may change with every start of a session."""
        widest = {name: stream.lateness_us for name, stream in streams.items()}
        for batch in range(upto_batch + 1):
            arrival = self.of(batch)
            for name in widest.keys() & arrival.newest_us.keys():
                lateness_us = arrival.newest_us[name] - arrival.late_before_us[name]
                widest[name] = max(widest[name], lateness_us)
        return widest
