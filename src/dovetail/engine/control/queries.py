"""The queries of a session: accepted at any time, in effect with the next batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dovetail.core.errors import DovetailError, SqlError
from dovetail.engine.admission.admission import Admission
from dovetail.engine.admission.query_estimate import QueryEstimate
from dovetail.engine.control.changelog import Action
from dovetail.engine.control.control_plane import ControlPlane
from dovetail.engine.control.query_options import QueryOptions
from dovetail.engine.control.query_status import QueryStatus
from dovetail.engine.control.registry import QueryRecord, Registry
from dovetail.engine.delivery.delivery import Delivery
from dovetail.engine.head import Head
from dovetail.engine.planning.plans import Plans
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.needs import growing_streams
from dovetail.query.growing_groups import growing_groups
from dovetail.query.join_query import JoinQuery


class Queries:
    """Thread-safe: queries come and go while a batch runs."""

    def __init__(self, head: Head, plane: ControlPlane, admission: Admission, plans: Plans) -> None:
        self._head = head
        self._plane = plane
        self._admission = admission
        self._plans = plans

    # Changing

    def create(
        self,
        sql: str,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        may_replace: bool = False,
        request: str = "",
    ) -> QueryRecord:
        """Accept a query; it takes effect with the next batch. The same name and text again is no new query.

        Options by dotted key; those that are not given stay as they are in the query that is replaced.

        `request` is the client's own id of this call: once it was accepted, a repetition finds the same query.
        """
        self.compile(sql)
        with self._head.lock:
            estimates: list[QueryEstimate] = []

            def admit(live: LiveQuery) -> None:
                estimates.append(self._estimate(live))
                self._admission.check(live, estimates[0])

            record = self._plane.create(
                self._head.state, sql, name, options or {}, may_replace=may_replace, request=request, admit=admit
            )
            for estimate in estimates:
                self._admission.remember(record.id, estimate)
            return record

    def would_create(self, sql: str, name: str, options: Mapping[str, Any], *, may_replace: bool, request: str) -> bool:
        """Whether `create` would accept a new query now; False if it would find one. Raises what refuses it."""
        self.compile(sql)
        with self._head.lock:
            found = self._plane.change_of_new(
                self._head.state,
                sql,
                name,
                options,
                may_replace=may_replace,
                request=request,
                admit=lambda live: self._admission.check(live, self._estimate(live)),
            )
            return not isinstance(found, QueryRecord)

    def drop(self, query_id: str, *, request: str = "") -> QueryRecord:
        with self._head.lock:
            return self._plane.drop(self._head.state, query_id, request=request)

    def set_options(self, query_id: str, given: Mapping[str, Any], *, request: str = "") -> QueryRecord:
        """By dotted key; options that are not given stay as they are."""
        with self._head.lock:
            return self._plane.set_options(self._head.state, query_id, given, request=request)

    def to_change(self, action: Action, name: str, request: str) -> QueryRecord | None:
        """The query that has this name now; for a retry, the one that had it when the request was accepted."""
        with self._head.lock:
            return self._plane.query_to_change(self._head.state, action, name, request)

    def estimate(self, sql: str, options: QueryOptions | None = None) -> QueryEstimate:
        """What a query of this text would store, find and cost next to those that run."""
        with self._head.lock:
            keeps = (options or QueryOptions()).keep_intermediates
            return self._estimate(LiveQuery("", "", self.compile(sql), may_materialize=keeps))

    # Looking

    def record(self, query_id: str) -> QueryRecord:
        """The query as it stands, changes not yet in effect included as «pending» or «dropped»."""
        with self._head.lock:
            return self._registry()[query_id]

    def records(self) -> tuple[QueryRecord, ...]:
        with self._head.lock:
            return self._registry().records

    def named(self, name: str) -> QueryRecord | None:
        """The query that has this name now."""
        with self._head.lock:
            return self._registry().named(name)

    def is_in_effect(self, query_id: str) -> bool:
        """Whether no change of the query waits for a batch."""
        with self._head.lock:
            return self._head.state.registry.by_id.get(query_id) == self._registry().by_id.get(query_id)

    def await_effect(self, query_id: str, timeout_s: float | None = None) -> QueryRecord:
        """Until no change of the query is pending, or the time is up; the query as it stands then."""
        with self._head.lock:
            self.record(query_id)
            self._head.wait_for(lambda: self.is_in_effect(query_id), timeout_s)
            return self.record(query_id)

    def estimate_of(self, query_id: str) -> QueryEstimate | None:
        """What was said of the query when it was created; None if that was in an earlier process."""
        with self._head.lock:
            return self._admission.remembered(query_id)

    def status(self, query_id: str, delivery: Delivery | None = None) -> QueryStatus:
        """What the query is doing. `delivery` is that to its sink, which only a session knows."""
        with self._head.lock:
            record = self.record(query_id)
            streams, groups = self._growing(query_id)
            return QueryStatus(
                id=record.id,
                name=record.name,
                sql=record.sql,
                state=record.state.value,
                error=record.error,
                in_effect=self.is_in_effect(query_id),
                created_batch=record.created_batch,
                complete_from=record.answered_from,
                complete_from_text=self._complete_from_text(record),
                changed_batch=record.changed_batch,
                dropped_batch=record.dropped_batch,
                failed_batch=record.failed_batch,
                total_rows=record.total_rows,
                committed_batch=self._head.batch,
                growing_streams=streams,
                growing_groups=groups,
                delivered_batch=None if delivery is None else delivery.delivered_batch,
                sink_error=None if delivery is None else delivery.error,
                backfill=record.backfill_status(self._head.batch),
            )

    def compile(self, sql: str) -> JoinQuery:
        return self._plane.compile(sql)

    def compiled(self, query_id: str) -> JoinQuery:
        with self._head.lock:
            return self._plane.compiled(self._head.state, query_id)

    def read_columns(self) -> dict[str, set[str]]:
        """By stream, the columns that the next batch needs: the event time always, for watermarks."""
        with self._head.lock:
            streams = self._plane.streams
            found = {name: {stream.event_time} if stream.event_time else set() for name, stream in streams.items()}
            for record in self._registry().records:
                if record.is_live and self._compiles(record):
                    for stream, columns in self.compiled(record.id).read_columns().items():
                        found[stream] |= columns
            return found

    def _compiles(self, record: QueryRecord) -> bool:
        """One that does not any more is the matter of the next batch, which stops it alone."""
        try:
            self.compiled(record.id)
        except SqlError:
            return False
        return True

    def _complete_from_text(self, record: QueryRecord) -> str | None:
        try:
            return record.complete_from_text(self.compiled(record.id))
        except DovetailError:
            # As below: its streams are not registered again.
            return None

    def _growing(self, query_id: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The streams and groups that the query keeps for ever."""
        try:
            live = LiveQuery(query_id, query_id, self.compiled(query_id))
        except DovetailError:
            # After a restart, before its streams are registered again: nothing can be said yet.
            return (), ()
        return tuple(growing_streams(live)), tuple(growing_groups(live.query))

    def _estimate(self, live: LiveQuery) -> QueryEstimate:
        running = self._plans.running
        plan = running.plan if running else None
        head = self._head
        return self._admission.estimate(live, head.state, plan, head.statistics, self._plane.streams)

    def _registry(self) -> Registry:
        return self._plane.registry(self._head.state)
