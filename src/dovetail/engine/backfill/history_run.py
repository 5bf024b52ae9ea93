"""One query over the past: an engine of its own, which runs the rows of old batches again and keeps what is missing.

Its checkpoint lies inside the session's. Its batch numbers are the session's: to commit batch j says that everything
up to j was run, several old batches at once or one by one. So it goes on after a crash where its last commit left it.

It may have to go back behind what the session adopted: files of it were damaged or removed. Its chunks then end where
the session's adoption ended, so that each is adopted whole or was adopted before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from dovetail.core.errors import HistoryError
from dovetail.engine.backfill.history import Arrivals, History
from dovetail.engine.backfill.record import MissingResults, with_batch_column
from dovetail.engine.control.registry import QueryState
from dovetail.engine.engine import Engine
from dovetail.engine.options import EngineOptions
from dovetail.engine.options.limits import Limits
from dovetail.engine.options.partitioning import EVEN, REFERENCES
from dovetail.engine.state import NO_BATCH
from dovetail.plan.shipping import Copies
from dovetail.query.stream import Stream
from dovetail.runtime.batch_task import BatchTask
from dovetail.store.commit import OnStep
from dovetail.store.layout import backfill_dir
from dovetail.store.manifest import Arrival, PastBatch, read_manifest, read_manifests


class HistoryRun:
    """Not thread-safe but for `committed`, the batches it has committed, with their answers; it only grows."""

    def __init__(
        self,
        session: Engine,
        missing: MissingResults,
        history: History,
        arrivals: Arrivals,
        on_step: OnStep,
        ends: Collection[int] = (),
    ) -> None:
        """No chunk goes beyond one of the batches `ends`, up to which the session has adopted or is adopting."""
        self._session_root = session.root
        self._ends = ends
        self._missing = missing
        self._history = history
        self._arrivals = arrivals
        self._engine = Engine(
            session.root / backfill_dir(missing.live.id),
            _modest(session.options),
            on_step=on_step,
            units=session.plans.unit_costs,
            # SQL text knows nothing of the column that tells the batch, or SELECT * would show it.
            compile_text=lambda _: missing.query(),
        )
        try:
            self._query = self._register(session.streams.by_name, session.head.batch)
            self._check_alive()
            self.committed = [(each.batch, each.results) for each in read_manifests(self._engine.root)]
        except BaseException:
            self._engine.close()
            raise

    @property
    def committed_batch(self) -> int:
        return self.committed[-1][0] if self.committed else NO_BATCH

    @property
    def root(self) -> Path:
        return self._engine.root

    def is_complete(self, done_batch: int, under_way: PastBatch) -> bool:
        """Whether no result is missing once `done_batch` is done, which is older than the batch under way."""
        following = done_batch + 1
        return not self._is_wanted(following, under_way.arrival if following == under_way.batch else None)

    def advance(self, limit: int, newest_batch: int) -> int:
        """Run up to `limit` old batches as one, none newer than `newest_batch`; how many these were."""
        first = self.committed_batch + 1
        batches = []
        for batch in range(first, min(first + limit, newest_batch + 1)):
            if not self._is_wanted(batch):
                break
            batches.append(self._arrivals.past(batch))
            if batch in self._ends:
                break
        if batches:
            self._run(tuple(batches))
        return len(batches)

    def close(self) -> None:
        self._engine.close()

    def _register(self, streams: Mapping[str, Stream], newest_batch: int) -> str:
        live = self._missing.live
        used = {relation.stream: streams[relation.stream] for relation in live.query.relations}
        lateness_us = self._arrivals.widest_lateness_us(used, newest_batch)
        for name in sorted(used):
            self._engine.streams.create(with_batch_column(used[name], lateness_us[name]))
        return self._engine.queries.create(live.query.sql, live.name, {"keep_intermediates": False}).id

    def _run(self, past: tuple[PastBatch, ...]) -> None:
        last = past[-1].batch
        self._engine.batches.run(last, lambda task: self._history.run(self._of_the_past(task, past), past))
        self._check_alive()
        self.committed.append((last, read_manifest(self._engine.root, last).results))

    def _of_the_past(self, task: BatchTask, past: tuple[PastBatch, ...]) -> BatchTask:
        """The task with each row judged as it was then, and with the bad rows that these batches took again."""
        streams = {stream.name for stream in task.streams}
        retried = [
            (replace(file, path=str(self._session_root / file.path)), each.batch)
            for each in past
            for file in each.arrival.retried
            if file.stream in streams
        ]
        return replace(
            task,
            late_before_us_by_batch=tuple(
                (each.batch, stream, us) for each in past for stream, us in each.arrival.late_before_us.items()
            ),
            last_time_us_by_batch=tuple(
                (each.batch, stream, us) for each in past for stream, us in each.arrival.last_time_us.items()
            ),
            retried=tuple(retried),
        )

    def _check_alive(self) -> None:
        record = self._engine.queries.record(self._query)
        if record.state is QueryState.QUARANTINED:
            raise HistoryError(f"the query fails on old rows: {record.error}")

    def _is_wanted(self, batch: int, arrival: Arrival | None = None) -> bool:
        since = self._arrivals.of(self._missing.live.complete_from)
        return self._missing.may_have_members_in(batch, arrival or self._arrivals.of(batch), since)


def _modest(options: EngineOptions) -> EngineOptions:
    """One task at a time: a backfill takes at most one core from the others.

    Limits are for batches of the session: a chunk of the past is several, and nobody waits for it.
    """
    return EngineOptions(
        partitioning=replace(options.partitioning, partitions=1, exchange=REFERENCES, placement=EVEN),
        limits=Limits.none(),
        storage=options.storage,
        tuning=replace(
            options.tuning, small_batch_rows=1 << 62, plan_in_background=False, copies=Copies.PARTITION.value
        ),
        timezone=options.timezone,
    )
