"""Runs batches, one after the other: each is planned, run, settled and committed, and then told to whoever waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dovetail.engine.admission.query_limits import HeldTo
from dovetail.engine.admission.storage_limit import StorageLimit
from dovetail.engine.batch.choose_samples import choose_samples
from dovetail.engine.batch.finish_batch import finish_batch
from dovetail.engine.batch.idle_streams import IdleWatch
from dovetail.engine.batch.make_task import make_task
from dovetail.engine.batch.observe_batch import Batch
from dovetail.engine.batch.parts import Parts
from dovetail.engine.batch.progress import make_progress, written_entry
from dovetail.engine.batch.read_messages import read_messages
from dovetail.engine.delivery.commit_news import CommitNews
from dovetail.engine.explain.describe_placement import placement_entry
from dovetail.engine.planning.planner import Planned
from dovetail.engine.state import EngineState
from dovetail.plan.sampled_join import SampledJoin
from dovetail.plan.shared_plan import SharedPlan
from dovetail.query.stream import Stream
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.message import Message
from dovetail.store.manifest import Arrival

Run = Callable[[BatchTask], list[Message]]
"""Runs a batch's tasks over its rows and returns every message of the last hop."""


class Batches:
    """One thread runs them; who asks for progress or wants a join sampled may be in another."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._idle_watch = IdleWatch(parts.options.idle_timeout_s)
        self._sampled_joins: tuple[SampledJoin, ...] = ()
        self.progress: dict[str, Any] | None = None

    def sample_joins(self, joins: tuple[SampledJoin, ...]) -> None:
        """Estimate these joins, too, from the next batch on, a few a batch, in place of those asked for before."""
        self._sampled_joins = joins

    def run(self, batch: int, run: Run, offsets: Mapping[str, str] | None = None) -> bool:
        """One batch, exactly once: False if it was committed before. `offsets`: by stream, how far it is read then."""
        if batch <= self._parts.head.batch:
            return False
        began, began_at = time.perf_counter(), self._parts.clock()
        begun = self._parts.plans.for_batch(batch)
        before, planned, streams = begun.before, begun.planned, begun.streams
        statistics = self._parts.head.statistics
        task = make_task(
            self._parts.root,
            self._parts.options,
            before,
            planned,
            streams,
            (*choose_samples(planned.queries, statistics), *self._sampled_joins),
            self._parts.fill_policy.budget_rows(statistics, streams),
            self.progress,
        )
        planned_at = time.perf_counter()
        self._parts.on_step("before_run")
        messages = run(task)
        self._parts.on_step("after_run")
        ran_at = time.perf_counter()
        report, written = read_messages(messages)
        with self._parts.head.lock:
            before, adopted = self._parts.plane.adoption.settle(before)
        idle = self._idle_watch.idle(streams, report.streams, began_at)
        state, draft = finish_batch(
            before,
            planned.plan,
            streams,
            report,
            written,
            task.fill_chunks,
            idle,
            HeldTo(task.limits, self._storage_limit(planned, streams)),
        )
        arrival = Arrival(before.max_time_us_by_stream, dict(task.late_before_us), offsets or {})
        draft = replace(draft, results=(*draft.results, *adopted), arrival=arrival)
        prepared = draft.prepare(self._parts.root, self._parts.on_step)
        committed = prepared.commit(self._parts.root, self._parts.clock, self._parts.on_step)
        with self._parts.head.lock:
            self._parts.head.move(state)
            self._parts.answers.add(batch, draft.results)
        durations = {
            "plan": (planned_at - began) * 1e3,
            "run": (ran_at - planned_at) * 1e3,
            "commit": (time.perf_counter() - ran_at) * 1e3,
        }
        report = replace(report, results=list(draft.results))
        statistics = self._parts.head.statistics
        progress = make_progress(state, planned.plan, streams, report, durations, self._parts.clock(), statistics, idle)
        placement = self._note_placement(batch, planned.plan, progress)
        seen = Batch(before, state, planned.plan, streams, report, tuple(written))
        units = self._note_units(seen, sum(durations.values()) / 1e3, is_one_task=task.is_small)
        self.progress = {**progress, "written": written_entry(written), **placement, **units}
        self._note_committed(state, planned, self.progress)
        committed.clean_up(self._parts.root, self._parts.on_step)
        self._parts.answers.tell(CommitNews(batch, self.progress, draft.results))
        return True

    def _note_committed(self, state: EngineState, planned: Planned, progress: Mapping[str, Any]) -> None:
        """Tell everybody who waits, and everything that remembers more than it needs from now on."""
        self._parts.plans.note_committed(state.batch, planned, progress["durationMs"]["run"], progress["numInputRows"])
        with self._parts.head.lock:
            self._parts.plane.forget(state)
            self._parts.admission.forget_others(self._parts.plane.registry(state).by_id)
            self._parts.plane.adoption.follow(state)
            self._parts.head.announce()

    def _note_placement(self, batch: int, plan: SharedPlan, progress: Mapping[str, Any]) -> dict[str, Any]:
        """Where placements follow the data: what this batch says of the one it ran by."""
        with self._parts.plans.lock:
            placer = self._parts.plans.placer
            if placer is None:
                return {}
            placer.note_batch(batch, plan, self._parts.head.statistics)
            return {"placement": placement_entry(placer, progress["shipped"]["rows"])}

    def _note_units(self, seen: Batch, batch_s: float, *, is_one_task: bool) -> dict[str, Any]:
        """Where the number of units follows the load: what this batch makes of it."""
        with self._parts.plans.lock:
            elastic = self._parts.plans.elastic
            if elastic is None:
                return {}
            now = elastic.note_batch(seen, self._parts.head.statistics, batch_s, is_one_task=is_one_task)
            return {"units": now.to_json()}

    def _storage_limit(self, planned: Planned, streams: Mapping[str, Stream]) -> StorageLimit | None:
        limit = self._parts.options.max_query_bytes
        if limit is None:
            return None
        return StorageLimit(
            limit,
            planned.queries,
            planned.decisions.intermediates,
            streams,
            self._parts.head.statistics,
            planned.plan.groups,
        )
