"""The engine: one order of batches, one place where queries and plans change.

begin_batch(b)   apply the changelog, plan if anything changed, say what every task must know
   runtime       runs the source operator and the hops (Spark or in-process)
finish_batch     fold the reports into the next state, commit it, clean up
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dovetail.core.clock import Clock, system_clock
from dovetail.core.errors import DovetailError, QueryError, SessionError, StreamError
from dovetail.engine.admission.admission import Admission
from dovetail.engine.admission.query_estimate import QueryEstimate
from dovetail.engine.admission.query_limits import HeldTo
from dovetail.engine.admission.storage_limit import StorageLimit
from dovetail.engine.backfill.adoption import Adoption
from dovetail.engine.backfill.record import BackfillStatus
from dovetail.engine.batch.choose_samples import choose_samples
from dovetail.engine.batch.commit_news import CommitNews, Listener, Listeners
from dovetail.engine.batch.finish_batch import finish_batch
from dovetail.engine.batch.idle_streams import IdleWatch
from dovetail.engine.batch.make_task import make_task
from dovetail.engine.batch.observe_batch import Batch
from dovetail.engine.batch.progress import make_progress, written_entry
from dovetail.engine.batch.read_messages import read_messages
from dovetail.engine.batch.result_index import ResultIndex
from dovetail.engine.calibrate.unit_cost_cache import load_unit_costs
from dovetail.engine.control.changelog import Action
from dovetail.engine.control.control_plane import CompileText, ControlPlane
from dovetail.engine.control.query_options import QueryOptions
from dovetail.engine.control.registry import QueryRecord, Registry
from dovetail.engine.explain.describe_placement import placement_entry
from dovetail.engine.options import EngineOptions
from dovetail.engine.planning.elastic_units import ElasticUnits
from dovetail.engine.planning.fill_intermediates import FillPolicy
from dovetail.engine.planning.key_group_placer import KeyGroupPlacer
from dovetail.engine.planning.plan_history import PlanChange
from dovetail.engine.planning.planner import Planned, Planner
from dovetail.engine.state import EngineState, stream_text
from dovetail.optimizer.decisions import Decide
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.sampled_join import SampledJoin
from dovetail.plan.shared_plan import SharedPlan
from dovetail.query.join_query import JoinQuery
from dovetail.query.stream import Stream
from dovetail.query.stream_spec import StreamSpec
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.message import Message
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.unit_costs import UnitCosts
from dovetail.store.bucket_file import BucketMeta, check_bucket
from dovetail.store.commit import OnStep, no_step
from dovetail.store.layout import open_layout
from dovetail.store.lock import CheckpointLock
from dovetail.store.manifest import Arrival, ResultFile, read_latest

Run = Callable[[BatchTask], list[Message]]
"""Runs a batch's tasks over its rows and returns every message of the last hop."""


class Engine:
    """Everything but the data path. Thread-safe: queries come and go while a batch runs."""

    def __init__(
        self,
        root: Path,
        options: EngineOptions,
        *,
        clock: Clock = system_clock,
        on_step: OnStep = no_step,
        decide: Decide | None = None,
        units: UnitCosts | None = None,
        fill_policy: FillPolicy | None = None,
        compile_text: CompileText | None = None,
    ) -> None:
        """`decide` and `units` take the place of the planner that the options name and of this machine's costs.

        `compile_text` takes the place of the front end.
        """
        self.root = root
        self.options = options
        self._clock = clock
        self._on_step = on_step
        self._fill_policy = fill_policy or FillPolicy()
        self._planner = Planner(options, units or load_unit_costs(), decide, self._fill_policy)
        self._idle_watch = IdleWatch(options.idle_timeout_s)
        self._admission = Admission(options, self._planner.joint.units)
        self._lock = threading.RLock()
        # Held while a plan is made, which takes longer than anybody should wait who creates a query. Whoever has it
        # may take the other one, never the other way round.
        self._plan_lock = threading.RLock()
        self._checkpoint_lock = CheckpointLock(root)
        try:
            open_layout(root)
            latest = read_latest(root)
            self._state = EngineState() if latest is None else EngineState.from_stored(latest[1])
            for meta in self._state.buckets:
                check_bucket(root, meta)
            self._control = ControlPlane(root, options, compile_text, self._check_backfill)
            self._control.streams = {name: spec.stream for name, spec in self.declared_streams().items()}
            self._results = ResultIndex(root)
            if options.elastic:
                self._planner.elastic = ElasticUnits(options, self._state.buckets)
        except DovetailError:
            self._checkpoint_lock.release()
            raise
        self._committed = threading.Condition(self._lock)
        self._listeners = Listeners()
        self._live: dict[str, LiveQuery] = {}
        self._adoption: Adoption | None = None
        self._sampled_joins: tuple[SampledJoin, ...] = ()
        self.progress: dict[str, Any] | None = None

    def close(self) -> None:
        self._checkpoint_lock.release()

    def attach(self, adoption: Adoption) -> None:
        """Have every commit adopt what backfills brought; without it queries cannot be backfilled."""
        with self._lock:
            self._adoption = adoption
            adoption.follow(self._state)

    def _check_backfill(self, state: EngineState, name: str, query: JoinQuery) -> None:
        if query.aggregation is not None:
            raise QueryError(
                f"query {name!r} cannot be backfilled: its groups begin with its first batch",
                hint="create it without backfill; or backfill a query for the rows, and group what it answers",
            )
        if self._adoption is None:
            raise QueryError(f"query {name!r} cannot be backfilled: this session keeps no history")
        self._adoption.check(state, name, query)

    # Streams and queries

    @property
    def streams(self) -> Mapping[str, Stream]:
        """All that are registered or declared; a new one gives a new value, so a batch keeps the one it began with."""
        return self._control.streams

    def create_stream(self, stream: Stream) -> None:
        with self._lock:
            if stream.name in self.streams:
                raise StreamError(f"stream {stream.name!r} exists already", hint="give the second one another name")
            recorded = self._state.stream_texts.get(stream.name)
            if recorded is not None and recorded != stream_text(stream):
                raise StreamError(
                    f"stream {stream.name!r} differs from the one this checkpoint was made with",
                    where=f"now {stream_text(stream)}; then {recorded}",
                    hint="register the same columns and event time, or start with an empty checkpoint folder",
                )
            self._control.streams = {**self.streams, stream.name: stream}

    def declared_streams(self) -> dict[str, StreamSpec]:
        """The streams that come back by themselves after a restart, by name."""
        with self._lock:
            return self._control.declared(self._state)

    def is_declared(self, spec: StreamSpec, *, request: str = "") -> bool:
        """Whether there is nothing to do for it; refuses a name that means another stream."""
        with self._lock:
            if self._control.is_declared(self._state, spec, request=request):
                return True
            if any(name.lower() == spec.name.lower() and name != spec.name for name in self.streams):
                raise StreamError(
                    f"stream {spec.name!r} differs from another only in case", hint="SQL cannot tell them: rename it"
                )
            unnamed = sorted({*self.streams, *self._state.stream_texts} - set(self.declared_streams()))
            if spec.name in unnamed:
                raise StreamError(
                    f"stream {spec.name!r} was registered as a DataFrame", hint="give the new one another name"
                )
            if self._state.stream_texts and not set(unnamed).isdisjoint(self._state.stream_texts):
                raise SessionError(
                    f"stream {spec.name!r} comes too late: this checkpoint reads {', '.join(unnamed)} from DataFrames, "
                    "so its sources are fixed",
                    hint="declare every stream of a new checkpoint: then more can come at any time",
                )
            return False

    def declare_stream(self, spec: StreamSpec, *, request: str = "") -> None:
        """Make a stream part of the checkpoint; the next batch may bring its rows."""
        with self._lock:
            if not self.is_declared(spec, request=request):
                self._control.declare(self._state, spec, request=request)
                self._control.streams = {**self.streams, spec.name: spec.stream}

    def create_query(
        self,
        sql: str,
        name: str,
        options: QueryOptions | None = None,
        *,
        may_replace: bool = False,
        request: str = "",
    ) -> QueryRecord:
        """Accept a query; it takes effect with the next batch. The same name and text again is no new query.

        `request` is the client's own id of this call: once it was accepted, a repetition finds the same query.
        """
        self._control.compile(sql)
        with self._lock:
            options = options or QueryOptions()
            estimates: list[QueryEstimate] = []

            def admit(live: LiveQuery) -> None:
                estimates.append(self._estimate(live))
                self._admission.check(live, estimates[0])

            record = self._control.create(
                self._state, sql, name, options, may_replace=may_replace, request=request, admit=admit
            )
            for estimate in estimates:
                self._admission.remember(record.id, estimate)
            return record

    def estimate(self, sql: str, options: QueryOptions | None = None) -> QueryEstimate:
        """What a query of this text would store, find and cost next to those that run."""
        with self._lock:
            keeps = (options or QueryOptions()).keep_intermediates
            return self._estimate(LiveQuery("", "", self.compile(sql), may_materialize=keeps))

    def estimate_of(self, query_id: str) -> QueryEstimate | None:
        """What was said of the query when it was created; None if that was in an earlier process."""
        with self._lock:
            return self._admission.remembered(query_id)

    def _estimate(self, live: LiveQuery) -> QueryEstimate:
        running = self._planner.running
        plan = running.plan if running else None
        return self._admission.estimate(live, self._state, plan, self.statistics, self.streams)

    def drop_query(self, query_id: str, *, request: str = "") -> QueryRecord:
        with self._lock:
            return self._control.drop(self._state, query_id, request=request)

    def set_query_options(self, query_id: str, given: Mapping[str, Any], *, request: str = "") -> QueryRecord:
        """By dotted key; options that are not given stay as they are."""
        with self._lock:
            return self._control.set_options(self._state, query_id, given, request=request)

    def query_to_change(self, action: Action, name: str, request: str) -> QueryRecord | None:
        """The query that has this name now; for a retry, the one that had it when the request was accepted."""
        with self._lock:
            return self._control.query_to_change(self._state, action, name, request)

    def record(self, query_id: str) -> QueryRecord:
        """The query as it stands, changes not yet in effect included as «pending» or «dropped»."""
        with self._lock:
            return self._registry()[query_id]

    def backfill_status(self, query_id: str) -> BackfillStatus | None:
        with self._lock:
            return self._registry()[query_id].backfill_status(self._state.batch)

    def records(self) -> tuple[QueryRecord, ...]:
        with self._lock:
            return self._registry().records

    def named(self, name: str) -> QueryRecord | None:
        """The query that has this name now."""
        with self._lock:
            return self._registry().named(name)

    def results(self, query_id: str) -> list[ResultFile]:
        with self._lock:
            return self._results.of(query_id)

    def results_after(self, query_id: str, batch: int) -> tuple[int, tuple[ResultFile, ...]]:
        """The first batch later than `batch` with answers, and their files; else the newest batch and no file."""
        with self._lock:
            return self._results.after(query_id, batch) or (self._state.batch, ())

    def compiled(self, query_id: str) -> JoinQuery:
        with self._lock:
            return self._control.compiled(self._state, query_id)

    def compile(self, sql: str) -> JoinQuery:
        return self._control.compile(sql)

    def read_columns(self) -> dict[str, set[str]]:
        """By stream, the columns that the next batch needs: the event time always, for watermarks."""
        with self._lock:
            found = {name: {stream.event_time} if stream.event_time else set() for name, stream in self.streams.items()}
            for record in self._registry().records:
                if record.is_live:
                    for stream, columns in self.compiled(record.id).read_columns().items():
                        found[stream] |= columns
            return found

    @property
    def committed_batch(self) -> int:
        return self._state.batch

    def plan(self) -> tuple[SharedPlan, tuple[LiveQuery, ...]]:
        """The plan as the next batch would use it."""
        planned = self.planned()
        return planned.plan, planned.asked

    def planned(self) -> Planned:
        """The plan as the next batch would use it, and what it was made of."""
        with self._plan_lock:
            return self._plan_for(*self._apply_changes(self._state.batch + 1), self._planner)[1]

    def previewed(self, sql: str) -> tuple[QueryRecord, Planned]:
        """A query as it would be if it were created now, and the plan that the next batch would use then."""
        with self._plan_lock:
            with self._lock:
                state, record = self._control.previewed(self._state, self._state.batch + 1, sql)
                queries = self._live_queries(state.registry.running)
            return record, self._plan_for(state, queries, self._planner.for_preview())[1]

    @property
    def state(self) -> EngineState:
        """As the last committed batch left it."""
        return self._state

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
    def plan_changes(self) -> tuple[PlanChange, ...]:
        """Why the plan changed since this process began, the oldest change first."""
        with self._plan_lock:
            return self._planner.history.changes

    @property
    def statistics(self) -> StatsCatalog:
        """What is known of the data after the last batch; what the user gave comes first."""
        row_bytes = _row_bytes_by_store(self._state.buckets)
        return (self.options.statistics or StatsCatalog()).with_observed(self._state.observed, row_bytes)

    def sample_joins(self, joins: tuple[SampledJoin, ...]) -> None:
        """Estimate these joins, too, from the next batch on, a few a batch, in place of those asked for before."""
        with self._lock:
            self._sampled_joins = joins

    def check_ready(self) -> None:
        """Raise unless every stream of the checkpoint is registered again and every query compiles."""
        with self._lock:
            if not self.streams:
                raise SessionError("no stream is registered", hint="call session.create_stream(...) before start()")
            missing = set(self._state.stream_texts) - set(self.streams)
            # Spark's checkpoint knows its sources by name if Dovetail opened all of them, else by position.
            is_fixed = bool(self._state.stream_texts) and not set(self.streams) <= set(self.declared_streams())
            extra = set(self.streams) - set(self._state.stream_texts) if is_fixed else set()
            if missing or extra:
                raise SessionError(
                    "the streams differ from those this checkpoint was made with: "
                    + "; ".join(
                        f"{what}: {', '.join(sorted(names))}"
                        for what, names in (("missing", missing), ("new", extra))
                        if names
                    ),
                    hint="register the same streams, or start with an empty checkpoint folder",
                )

    # Batches

    def run_batch(self, batch: int, run: Run, offsets: Mapping[str, str] | None = None) -> bool:
        """One batch, exactly once: False if it was committed before. `offsets`: by stream, how far it is read then."""
        if batch <= self._state.batch:
            return False
        began, began_at = time.perf_counter(), self._clock()
        with self._plan_lock:
            streams = self.streams
            before, planned = self._plan_for(*self._apply_changes(batch), self._planner)
            task = make_task(
                self.root,
                self.options,
                before,
                planned,
                streams,
                (*choose_samples(planned.queries, self.statistics), *self._sampled_joins),
                self._fill_policy.budget_rows(self.statistics, streams),
                self.progress,
            )
        planned_at = time.perf_counter()
        self._on_step("before_run")
        messages = run(task)
        self._on_step("after_run")
        ran_at = time.perf_counter()
        report, written = read_messages(messages)
        with self._lock:
            before, adopted = (before, ()) if self._adoption is None else self._adoption.settle(before)
        idle = self._idle_watch.idle(streams, report.streams, began_at)
        state, draft = finish_batch(
            before,
            planned.plan,
            streams,
            report,
            written,
            task.fill_chunks,
            idle,
            HeldTo(task.limits, self._storage_limit(planned)),
        )
        arrival = Arrival(before.max_time_us_by_stream, dict(task.late_before_us), offsets or {})
        draft = replace(draft, results=(*draft.results, *adopted), arrival=arrival)
        committed = draft.prepare(self.root, self._on_step).commit(self.root, self._clock, self._on_step)
        with self._lock:
            self._state = state
            self._results.add(batch, draft.results)
        durations = {
            "plan": (planned_at - began) * 1e3,
            "run": (ran_at - planned_at) * 1e3,
            "commit": (time.perf_counter() - ran_at) * 1e3,
        }
        report = replace(report, results=list(draft.results))
        progress = make_progress(state, planned.plan, streams, report, durations, self._clock(), self.statistics, idle)
        placement = self._note_placement(batch, planned.plan, progress)
        seen = Batch(before, state, planned.plan, streams, report, tuple(written))
        units = self._note_units(seen, sum(durations.values()) / 1e3, is_one_task=task.is_small)
        self.progress = {**progress, "written": written_entry(written), **placement, **units}
        self._note_committed(state, planned, self.progress)
        committed.clean_up(self.root, self._on_step)
        self._listeners.tell(CommitNews(batch, self.progress, draft.results))
        return True

    def _note_committed(self, state: EngineState, planned: Planned, progress: Mapping[str, Any]) -> None:
        """Tell everybody who waits, and everything that remembers more than it needs from now on."""
        with self._plan_lock:
            self._planner.note_committed(state.batch, planned, progress["durationMs"]["run"], progress["numInputRows"])
        with self._lock:
            self._control.forget(state)
            self._admission.forget_others(self._registry().by_id)
            if self._adoption is not None:
                self._adoption.follow(state)
            self._committed.notify_all()

    def _note_placement(self, batch: int, plan: SharedPlan, progress: Mapping[str, Any]) -> dict[str, Any]:
        """Where placements follow the data: what this batch says of the one it ran by."""
        with self._plan_lock:
            placer = self._planner.placer
            if placer is None:
                return {}
            placer.note_batch(batch, plan, self.statistics)
            return {"placement": placement_entry(placer, progress["shipped"]["rows"])}

    def _note_units(self, seen: Batch, batch_s: float, *, is_one_task: bool) -> dict[str, Any]:
        """Where the number of units follows the load: what this batch makes of it."""
        with self._plan_lock:
            if self.elastic is None:
                return {}
            return {"units": self.elastic.note_batch(seen, self.statistics, batch_s, is_one_task=is_one_task).to_json()}

    # Waiting and listening

    def await_batch(self, batch: int, timeout_s: float | None = None) -> bool:
        """Until `batch` is committed; False when the time is up first."""
        with self._lock:
            return self._committed.wait_for(lambda: self._state.batch >= batch, timeout_s)

    def await_effect(self, query_id: str, timeout_s: float | None = None) -> QueryRecord:
        """Until no change of the query is pending, or the time is up; the query as it stands then."""
        with self._lock:
            self.record(query_id)
            self._committed.wait_for(lambda: self.is_in_effect(query_id), timeout_s)
            return self.record(query_id)

    def is_in_effect(self, query_id: str) -> bool:
        """Whether no change of the query waits for a batch."""
        with self._lock:
            return self._state.registry.by_id.get(query_id) == self._registry().by_id.get(query_id)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Have `listener` called after every commit, in the batch's thread; the answer ends it."""
        return self._listeners.add(listener)

    def _storage_limit(self, planned: Planned) -> StorageLimit | None:
        limit = self.options.max_query_bytes
        if limit is None:
            return None
        return StorageLimit(
            limit,
            planned.queries,
            planned.decisions.intermediates,
            self.streams,
            self.statistics,
            planned.plan.groups,
        )

    def _apply_changes(self, batch: int) -> tuple[EngineState, tuple[LiveQuery, ...]]:
        """The state in which `batch` runs: its number, and every change that is there now; and its queries."""
        with self._lock:
            state = self._state
            texts = {name: stream_text(stream) for name, stream in sorted(self.streams.items())}
            new = {name: batch for name in texts if name not in state.stream_texts} if state.stream_texts else {}
            state = replace(state, stream_texts=texts, first_batch_by_stream={**state.first_batch_by_stream, **new})
            state = self._control.applied(state, batch)
            return state, self._live_queries(state.registry.running)

    def _plan_for(
        self, state: EngineState, queries: tuple[LiveQuery, ...], planner: Planner
    ) -> tuple[EngineState, Planned]:
        # After a restart the queries are those of the recorded epoch, unless changes came in between.
        is_resumed = self.progress is None and state.registry.running == self._state.registry.running
        return planner.plan(queries, self.streams, state, self.statistics, is_resumed=is_resumed)

    def _live_queries(self, running: tuple[QueryRecord, ...]) -> tuple[LiveQuery, ...]:
        """The same records as long as the queries are the same: planners remember what they derive from one."""
        self._live = {record.id: self._live_query(record) for record in running}
        return tuple(self._live.values())

    def _live_query(self, record: QueryRecord) -> LiveQuery:
        query, complete_from = self.compiled(record.id), record.complete_from or 0
        may_materialize = record.options.keep_intermediates
        made = LiveQuery(
            record.id,
            record.name,
            query,
            complete_from,
            may_materialize=may_materialize,
            first_batch=record.created_batch or 0,
        )
        known = self._live.get(record.id)
        return known if known == made else made

    def _registry(self) -> Registry:
        return self._control.registry(self._state)


def _row_bytes_by_store(buckets: Iterable[BucketMeta]) -> dict[str, float]:
    rows: Counter[str] = Counter()
    size: Counter[str] = Counter()
    for meta in buckets:
        rows[meta.store] += meta.home_rows
        size[meta.store] += meta.size_bytes
    return {store: size[store] / rows[store] for store in rows if rows[store]}
