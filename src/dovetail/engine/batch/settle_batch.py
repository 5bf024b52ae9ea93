"""What a batch comes to: the state after it and the commit that would make it real. Nothing is written yet."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from dovetail.engine.admission.query_limits import HeldTo
from dovetail.engine.admission.storage_limit import StorageLimit
from dovetail.engine.batch.idle_streams import IdleWatch
from dovetail.engine.batch.next_bad_rows import check_bad_rows
from dovetail.engine.batch.next_state import next_state
from dovetail.engine.batch.parts import Parts
from dovetail.engine.batch.run_tasks import Ran
from dovetail.engine.observe.finished_batch import FinishedBatch
from dovetail.optimizer.planned import Planned
from dovetail.query.stream import Stream
from dovetail.store.commit import Draft


@dataclass(frozen=True)
class Settled:
    """`done` is the batch as those see it who learn from it; `idle` are streams that hold nobody back any more.

    `failed_s` went to tries before this one.
    """

    ran: Ran
    done: FinishedBatch
    draft: Draft
    idle: frozenset[str]
    settle_s: float
    failed_s: float = 0.0

    @property
    def own_s(self) -> float:
        return self.ran.begun.plan_s + self.ran.run_s + self.settle_s


def settle_batch(ran: Ran, idle_watch: IdleWatch, parts: Parts) -> Settled:
    began_s = time.perf_counter()
    begun, report = ran.begun, ran.report
    check_bad_rows(begun.streams, report.bad_rows)
    with parts.head.lock:
        before, adopted = parts.plane.adoption.settle(begun.before)
    idle = idle_watch.idle(begun.streams, report.streams, begun.began_at)
    state, draft = next_state(
        before,
        begun.planned.plan,
        begun.streams,
        report,
        ran.written,
        begun.task.fill_chunks,
        idle,
        HeldTo(begun.task.limits, _storage_limit(begun.planned, begun.streams, parts)),
    )
    task = begun.task
    arrival = replace(
        draft.arrival,
        newest_us=before.max_time_us_by_stream,
        late_before_us=dict(task.late_before_us),
        offsets=begun.arrived.offsets,
        last_time_us=dict(task.last_time_us),
    )
    draft = replace(draft, results=(*draft.results, *adopted), arrival=arrival, source_log=begun.arrived.source_log)
    done = FinishedBatch(before, state, begun.planned.plan, begun.streams, report, ran.written)
    return Settled(ran, done, draft, idle, time.perf_counter() - began_s)


def _storage_limit(planned: Planned, streams: Mapping[str, Stream], parts: Parts) -> StorageLimit | None:
    limit = parts.options.limits.max_query_bytes
    if limit is None:
        return None
    kept, groups = planned.decisions.intermediates, planned.plan.groups
    return StorageLimit(limit, planned.queries, kept, streams, parts.head.statistics, groups)
