"""The plans of a session: the one that the next batch will use, the one that ran, why it changed, what would be if."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace

from dovetail.engine.control.control_plane import ControlPlane
from dovetail.engine.control.registry import QueryRecord, quarantined
from dovetail.engine.head import Head
from dovetail.engine.planning.elastic_units import ElasticUnits
from dovetail.engine.planning.key_group_placer import KeyGroupPlacer
from dovetail.engine.planning.plan_history import PlanChange
from dovetail.engine.planning.planner import Given, Made, Planner
from dovetail.engine.state import EngineState, stream_text
from dovetail.optimizer.pipeline import PassTrace
from dovetail.optimizer.planned import Planned
from dovetail.optimizer.policies import PoliciesOf
from dovetail.plan.live_query import LiveQuery
from dovetail.query.stream import Stream
from dovetail.stats.unit_costs import UnitCosts


@dataclass(frozen=True)
class BatchPlan:
    """What a batch begins with; `before` has its number, epoch, queries and fills."""

    before: EngineState
    planned: Planned
    streams: Mapping[str, Stream]


class Plans:
    """Thread-safe. `lock` is held while a plan is made, and by whoever tells the planner what a batch came to."""

    def __init__(self, head: Head, plane: ControlPlane, planner: Planner) -> None:
        self.lock = threading.RLock()
        self._head = head
        self._plane = plane
        self._planner = planner
        self._before_batch = planner.memory
        self._live: dict[str, LiveQuery] = {}

    # Looking

    def planned(self) -> Planned:
        """The plan as the next batch would use it, and what it was made of."""
        with self.lock:
            with self._head.lock:
                applied = self._applied(self._head.batch + 1)
            return self.made(self._given(*applied)).planned

    def previewed(self, sql: str) -> tuple[QueryRecord, Planned]:
        """A query as it would be if it were created now, and the plan that the next batch would use then."""
        with self.lock:
            with self._head.lock:
                streams = self._plane.streams
                state, record = self._plane.previewed(self._head.state, self._head.batch + 1, sql)
                queries = self._live_queries(state.registry.running)
            return record, self._planner.preview(self._given(state, queries, streams)).planned

    @property
    def running(self) -> Planned | None:
        """What the last batch of this process ran by."""
        return self._planner.running

    @property
    def changes(self) -> tuple[PlanChange, ...]:
        """Why the plan changed since this process began, the oldest change first."""
        with self.lock:
            return self._planner.history.changes

    @property
    def unit_costs(self) -> UnitCosts:
        """What plans are priced by."""
        return self._planner.joint.units

    @property
    def elastic(self) -> ElasticUnits | None:
        """The number of units and why, where it follows the load."""
        return self._planner.elastic

    @property
    def placer(self) -> KeyGroupPlacer | None:
        """What places key groups, where placements follow the data."""
        return self._planner.placer

    @property
    def traces(self) -> tuple[PassTrace, ...]:
        """How each pass of planning went when it ran last."""
        with self.lock:
            drawn = self._planner.memory.drawn
            return () if drawn is None else drawn.traces

    def follow(self, policies: PoliciesOf) -> None:
        """From now on these place and route indexes, in place of the options: for tests and benchmarks."""
        with self.lock:
            self._planner.policies = policies

    # Around a batch

    def for_batch(self, batch: int, stopped: Mapping[str, str] | None = None) -> BatchPlan:
        """The state in which `batch` runs, with every change that is there now, and the plan for it.

        With `stopped`, for another try: these queries are quarantined before it, for these reasons. Planning then
        remembers what it did before the first try, and of the tries nothing.
        """
        with self.lock:
            with self._head.lock:
                applied = self._applied(batch, stopped or {})
            given = self._given(*applied)
            if stopped is None:
                self._before_batch = self._planner.memory
                made = self.made(given)
            else:
                self._planner.memory = self._before_batch
                made = self._planner.preview(given)
            return BatchPlan(made.state, made.planned, applied[2])

    def made(self, given: Given) -> Made:
        """The plan for what is given, remembered by the planner."""
        return self._planner.plan(given)

    def note_committed(self, batch: int, planned: Planned, run_ms: float, rows: int) -> None:
        """The batch ran by this plan, and its results are real."""
        with self.lock:
            self._planner.note_committed(batch, planned, run_ms, rows)

    def _applied(
        self, batch: int, stopped: Mapping[str, str] | None = None
    ) -> tuple[EngineState, tuple[LiveQuery, ...], Mapping[str, Stream]]:
        """The state in which `batch` runs, its queries and its streams."""
        state, streams = self._head.state, self._plane.streams
        texts = {name: stream_text(stream) for name, stream in sorted(streams.items())}
        new = {name: batch for name in texts if name not in state.stream_texts} if state.stream_texts else {}
        state = replace(state, stream_texts=texts, first_batch_by_stream={**state.first_batch_by_stream, **new})
        state = self._plane.applied(state, batch)
        if stopped:
            running = [record for record in state.registry.running if record.id in stopped]
            gone = [quarantined(record, stopped[record.id], batch) for record in running]
            state = replace(state, registry=state.registry.updated(gone))
        return state, self._live_queries(state.registry.running), streams

    def _given(self, state: EngineState, queries: tuple[LiveQuery, ...], streams: Mapping[str, Stream]) -> Given:
        # After a restart the queries are those of the recorded epoch, unless changes came in between.
        is_resumed = self.running is None and state.registry.running == self._head.state.registry.running
        return Given(queries, streams, state, self._head.statistics, is_resumed)

    def _live_queries(self, running: tuple[QueryRecord, ...]) -> tuple[LiveQuery, ...]:
        """The same records as long as the queries are the same: planners remember what they derive from one."""
        self._live = {record.id: self._live_query(record) for record in running}
        return tuple(self._live.values())

    def _live_query(self, record: QueryRecord) -> LiveQuery:
        made = LiveQuery(
            record.id,
            record.name,
            self._plane.compiled(self._head.state, record.id),
            record.complete_from or 0,
            may_materialize=record.options.keep_intermediates,
            first_batch=record.created_batch or 0,
        )
        known = self._live.get(record.id)
        return known if known == made else made
