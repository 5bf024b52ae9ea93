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

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from dovetail.core.errors import TaskFailed, is_chargeable
from dovetail.engine.batch.aftermath import Aftermath
from dovetail.engine.batch.begin_batch import begin_batch
from dovetail.engine.batch.commit_batch import commit_batch
from dovetail.engine.batch.find_culprits import run_without_culprits
from dovetail.engine.batch.idle_streams import IdleWatch
from dovetail.engine.batch.parts import Parts
from dovetail.engine.batch.run_tasks import Run, run_tasks
from dovetail.engine.batch.settle_batch import Settled, settle_batch
from dovetail.engine.batch.tell_batch import tell_batch
from dovetail.engine.progress.print_progress import print_progress
from dovetail.plan.sampled_join import SampledJoin

T = TypeVar("T")


class Batches:
    """One thread runs them; who asks for progress or wants a join sampled may be in another."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._idle_watch = IdleWatch(parts.options.limits.idle_timeout_s)
        self._aftermath = Aftermath()
        self._sampled_joins: tuple[SampledJoin, ...] = ()

    def run(self, batch: int, run: Run, offsets: Mapping[str, str] | None = None) -> bool:
        """One batch, exactly once: False if it was committed before. `offsets`: by stream, how far it is read then."""
        if batch <= self._parts.head.batch:
            return False
        settled = self._settled(batch, run, offsets or {})
        committed = commit_batch(settled, self._parts)
        tell_batch(committed, self._aftermath, self._parts)
        return True

    def _settled(self, batch: int, run: Run, offsets: Mapping[str, str]) -> Settled:
        """What the batch comes to; if it fails and nobody knows with whom, what it comes to without the culprits."""
        parts = self._parts

        def attempt(stopped: Mapping[str, str] | None) -> Settled:
            begun = _ours(lambda: begin_batch(batch, offsets, self._sampled_joins, parts, stopped))
            ran = run_tasks(begun, run, parts.on_step)
            return _ours(lambda: settle_batch(ran, self._idle_watch, parts))

        try:
            return attempt(None)
        except TaskFailed as failure:
            with parts.head.lock:
                running = parts.plane.applied(parts.head.state, batch).registry.running
            old = [record.id for record in running if record.created_batch != batch]
            new = [record.id for record in running if record.created_batch == batch]
            try:
                return run_without_culprits(attempt, old, new, failure)
            except _OursFailed as nobodys:
                raise nobodys.cause from None

    def sample_joins(self, joins: tuple[SampledJoin, ...]) -> None:
        """Estimate these joins, too, from the next batch on, a few a batch, in place of those asked for before."""
        self._sampled_joins = joins

    @property
    def progress(self) -> dict[str, Any] | None:
        """The figures of the last batch as users see them; None before the first one of this process."""
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
