"""Runs batches, one after the other. Each goes through five phases, every one a record made from the one before:

Begun ------> Ran ------> Settled ------> Committed ------> Told
|            |             |                |                |
|            |             |                |                +-- planners learned, old files are gone, listeners
|            |             |                |                    heard; a failure here is counted, never raised
|            |             |                +-- the manifest is put, the head has moved: the batch happened
|            |             +-- the state after it, and the draft of its commit; still only in memory
|            +-- the reports of its tasks; their files have no name yet that anybody reads
+-- changes of queries and streams applied, the plan, what tasks are told

fails before Settled:   without a culprit, and it begins again with fewer queries (`find_culprits`)
crash before Committed: the batch never was, and Spark brings it again under the same number
crash after it:         the batch was; brought again, it is not run again
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from dovetail.core.errors import TaskFailed, is_chargeable
from dovetail.engine.batch.aftermath import Aftermath
from dovetail.engine.batch.begin_batch import begin_batch
from dovetail.engine.batch.check_follows import check_follows
from dovetail.engine.batch.commit_batch import commit_batch
from dovetail.engine.batch.find_culprits import run_without_culprits
from dovetail.engine.batch.idle_streams import IdleWatch
from dovetail.engine.batch.parts import Parts
from dovetail.engine.batch.run_tasks import Run, run_tasks
from dovetail.engine.batch.settle_batch import Settled, settle_batch
from dovetail.engine.batch.tell_batch import tell_batch
from dovetail.engine.progress.print_progress import print_progress
from dovetail.plan.sampled_join import SampledJoin
from dovetail.store.manifest import Arrived

T = TypeVar("T")

TELLING_PATIENCE_S = 10.0
"""How long whoever asks for progress waits for a batch that is committed and not told yet, which takes moments."""


@dataclass(frozen=True)
class UnderWay:
    """A batch that has begun and is neither committed nor failed; `lasts_s` is by the clock."""

    batch: int
    lasts_s: float


class Batches:
    """One thread runs them; who asks for progress or wants a join sampled may be in another."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._idle_watch = IdleWatch(parts.options.limits.idle_timeout_s)
        self._aftermath = Aftermath()
        self._sampled_joins: tuple[SampledJoin, ...] = ()
        self._began: tuple[int, float] | None = None

    def run(self, batch: int, run: Run, arrived: Arrived | None = None) -> bool:
        """One batch, exactly once: False if it was committed before. `arrived`: how far streams are read then."""
        arrived = arrived or Arrived()
        check_follows(arrived, batch, self._parts.chain)
        if batch <= self._parts.head.batch:
            return False
        self._began = batch, self.now
        try:
            committed = commit_batch(self._settled(batch, run, arrived), self._parts)
        finally:
            self._began = None
        tell_batch(committed, self._aftermath, self._parts)
        return True

    def _settled(self, batch: int, run: Run, arrived: Arrived) -> Settled:
        """What the batch comes to; if it fails and nobody knows with whom, what it comes to without the culprits."""
        parts, began_s = self._parts, time.perf_counter()

        def attempt(stopped: Mapping[str, str] | None) -> Settled:
            begun = _ours(lambda: begin_batch(batch, arrived, self._sampled_joins, parts, stopped))
            ran = run_tasks(begun, run, parts.on_step)
            return _ours(lambda: settle_batch(ran, self._idle_watch, parts))

        def streams_of(query: str) -> frozenset[str]:
            with parts.head.lock:
                relations = parts.plane.compiled(applied, query).relations
            return frozenset(relation.stream for relation in relations)

        try:
            return attempt(None)
        except TaskFailed as failure:
            with parts.head.lock:
                applied = parts.plane.applied(parts.head.state, batch)
            running = applied.registry.running
            old = [record.id for record in running if record.created_batch != batch]
            new = [record.id for record in running if record.created_batch == batch]
            try:
                settled = run_without_culprits(attempt, old, new, failure, streams_of)
            except _OursFailed as nobodys:
                raise nobodys.cause from None
            return replace(settled, failed_s=time.perf_counter() - began_s - settled.own_s)

    def sample_joins(self, joins: tuple[SampledJoin, ...]) -> None:
        """Estimate these joins, too, from the next batch on, a few a batch, in place of those asked for before."""
        self._sampled_joins = joins

    @property
    def now(self) -> float:
        """By the clock that batches are timed with."""
        return self._parts.clock()

    @property
    def under_way(self) -> UnderWay | None:
        """The batch that runs now; None between two."""
        began = self._began
        return None if began is None else UnderWay(began[0], self.now - began[1])

    @property
    def progress(self) -> dict[str, Any] | None:
        """The figures of the last batch as users see them; None before the first one of this process.

        Never of a batch older than the answers that can be read: a commit that is being told is waited for.
        """
        self._parts.head.await_told(TELLING_PATIENCE_S)
        figures = self._parts.head.figures
        return None if figures is None else print_progress(figures)


class _OursFailed(TaskFailed):
    """Planning or settling failed: because of some query, or of none."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(f"{type(cause).__name__}: {cause}")
        self.cause = cause


def _ours(step: Callable[[], T]) -> T:
    try:
        return step()
    except Exception as error:
        if not is_chargeable(error):
            raise
        raise _OursFailed(error) from error
