"""Accepts changes of queries and new streams, applies them at batch edges: each takes effect exactly once (A3, A9).

    create, replace, drop, set, declare  --check, append to the changelog-->  accepted («pending»)
    the next batch                       --apply in order-->                  in effect, with the number of that batch

A change is durable before anybody hears that it was accepted; the state that a batch commits says which changes are
part of it, so a crash in between applies none of them or all of them again to the same end.
"""

from __future__ import annotations

import logging
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from dovetail.core.errors import QueryDropped, QueryError, QueryExists, SqlError, StreamError
from dovetail.engine.backfill.adoption import Adoption, NoHistory
from dovetail.engine.control.changelog import Action, Change, Changelog
from dovetail.engine.control.check_sink import check_sink, check_sink_place, folders_of
from dovetail.engine.control.coverage import complete_from
from dovetail.engine.control.query_options import QueryOptions, query_options, replacing_options
from dovetail.engine.control.registry import QueryRecord, QueryState, Registry, check_name, quarantined
from dovetail.engine.options import EngineOptions
from dovetail.engine.state import EngineState
from dovetail.frontend.compile_sql import compile_sql
from dovetail.kernels.evaluate.try_out import try_out
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.needs import growing_streams
from dovetail.query.growing_groups import growing_groups
from dovetail.query.hide_secrets import check_no_secrets
from dovetail.query.join_query import JoinQuery
from dovetail.query.stream import Stream
from dovetail.query.stream_spec import StreamSpec

PREVIEWED = "(this SELECT)"
"""Stands for a query that is only looked at; no query can have this name."""
GROWTH_WIDTH = 200
TEXTS_REMEMBERED = 100

CompileText = Callable[[str], JoinQuery]
_log = logging.getLogger("dovetail")

Admit = Callable[[LiveQuery], object]
"""Raises if a new query would take too much."""


class ControlPlane:
    """Not thread-safe: called under the head's lock, always with the head's state.

    `adoption` says which queries can be backfilled, `frame_folders` what streams that are DataFrames read of files.
    """

    def __init__(self, root: Path, options: EngineOptions, compile_text: CompileText | None, applied: int = 0) -> None:
        """`applied` is how many changes the committed state has."""
        self._changelog = Changelog(root, applied=applied, syncs=options.syncs)
        self._root = root
        self._options = options
        self.adoption: Adoption = NoHistory()
        self.streams: Mapping[str, Stream] = {}
        self.frame_folders: dict[str, tuple[str, ...]] = {}
        self._compiled: dict[str, JoinQuery] = {}
        self._seen = Registry(), 0, Registry()
        # A text is compiled when it is checked and again when it is accepted.
        self._compile = lru_cache(TEXTS_REMEMBERED)(compile_text or self._compile_text)
        self._compile_accepted = compile_text or self._compile_unjudged

    # Accepting

    def create(
        self,
        state: EngineState,
        sql: str,
        name: str,
        given: Mapping[str, Any],
        *,
        may_replace: bool,
        request: str,
        admit: Admit,
    ) -> QueryRecord:
        """The same name, text and options again is no new query; with `may_replace` another text takes its place.

        Options by dotted key; those that are not given stay as they are in the query that is replaced. A quarantined
        query is replaced by its own text, too: so it begins anew.
        """
        found = self.change_of_new(state, sql, name, given, may_replace=may_replace, request=request, admit=admit)
        if isinstance(found, QueryRecord):
            return found
        _warn_of_growth(LiveQuery(name, name, self.compile(sql)))
        accepted = self._changelog.append(found)
        self._compiled[accepted.query] = self.compile(sql)
        return QueryRecord.accepted(accepted)

    def change_of_new(
        self,
        state: EngineState,
        sql: str,
        name: str,
        given: Mapping[str, Any],
        *,
        may_replace: bool,
        request: str,
        admit: Admit,
    ) -> Change | QueryRecord:
        """What `create` would append, or the query that it would find; raises what refuses it, and changes nothing."""
        check_name(name)
        options = self._options_of_new(state, name, given, may_replace=may_replace, request=request)
        change = Change(0, Action.CREATE, "", name, sql, options.to_json(), request=request)
        known_change = self._changelog.requested(change)
        if known_change is not None:
            return self.registry(state)[known_change.query]
        known = self.registry(state).named(name)
        is_same = known is not None and (known.sql, known.options) == (sql, options)
        if known is not None and is_same and (known.is_live or not may_replace):
            return known
        if known is not None and not may_replace:
            what = "text" if known.sql != sql else "options"
            raise QueryExists(
                f"query {name!r} exists already with another {what}",
                hint="replace it (CREATE OR REPLACE, replace=True), drop it first, or choose another name",
            )
        self._check_sink(state, name, options, None if known is None else known.options)
        compiled = self.compile(sql)
        live = LiveQuery(name, name, compiled, may_materialize=options.keep_intermediates)
        if options.backfill:
            self._check_backfill(state, name, compiled)
        self._check_growth(live)
        admit(live)
        return replace(change, replaces="" if known is None else known.id)

    def _options_of_new(
        self, state: EngineState, name: str, given: Mapping[str, Any], *, may_replace: bool, request: str
    ) -> QueryOptions:
        registry, known = self.registry(state), self._changelog.of_request(request)
        replaced = registry.named(name) if may_replace else None
        if known is not None and known.action is Action.CREATE:
            # A retry takes the place that it took at first, whoever has the name now.
            replaced = registry.by_id.get(known.replaces)
            if replaced is None and known.replaces:
                return QueryOptions.from_json(known.options)  # so long ago that nobody remembers what it replaced
        return replacing_options(given, QueryOptions() if replaced is None else replaced.options)

    def drop(self, state: EngineState, query_id: str, *, request: str) -> QueryRecord:
        """Dropping what is dropped is no change."""
        record = self.registry(state)[query_id]
        change = Change(0, Action.DROP, record.id, record.name, request=request)
        if record.state is not QueryState.DROPPED and self._changelog.requested(change) is None:
            self._changelog.append(change)
        return self.registry(state)[query_id]

    def set_options(self, state: EngineState, query_id: str, given: Mapping[str, Any], *, request: str) -> QueryRecord:
        """By dotted key; options that are not given stay as they are."""
        record = self.registry(state)[query_id]
        known = self._changelog.of_request(request)
        # A retry comes to the same options as its first time, whatever others changed since.
        base = record.options
        if known is not None and known.action is Action.SET:
            base = QueryOptions.from_json(known.options)
        options = query_options(given, base=base)
        change = Change(0, Action.SET, record.id, record.name, options=options.to_json(), request=request)
        if self._changelog.requested(change) is None and record.options != options:
            if record.state is QueryState.DROPPED:
                raise QueryDropped(f"query {record.name!r} is dropped", hint="create it anew with these options")
            self._check_sink(state, record.name, options, record.options)
            if options.backfill and not record.options.backfill:
                if record.backfill is not None and not record.backfill.is_running:
                    raise QueryError(
                        f"the backfill of query {record.name!r} has ended: {record.backfill.state.value}",
                        hint="create the query anew, under another name or with replace=True",
                    )
                self._check_backfill(state, record.name, self.compiled(state, record.id))
            self._changelog.append(change)
        return self.registry(state)[query_id]

    def is_declared(self, state: EngineState, spec: StreamSpec, *, request: str) -> bool:
        """Whether this stream is there already; another one of its name is an error."""
        if self._changelog.requested(_declaration(spec, request)) is not None:
            return True
        known = self.declared(state).get(spec.name)
        if known is not None and known != spec and known.with_rules_of(spec) == spec:
            return False  # other rules for bad rows are no other stream
        if known is not None and known != spec:
            raise StreamError(
                f"stream {spec.name!r} is declared already, and not the same",
                where=f"known are {_differing(known, spec)}",
                hint="declare it as it is known, or choose another name",
            )
        return known is not None

    def declare(self, state: EngineState, spec: StreamSpec, *, request: str) -> None:
        if not self.is_declared(state, spec, request=request):
            check_no_secrets(f"stream {spec.name!r}", spec.options)
            self._changelog.append(_declaration(spec, request))

    def redeclare(self, state: EngineState, spec: StreamSpec) -> tuple[QueryRecord, ...]:
        """Change a declared stream; the answer has the queries that mean something else with it, which begin anew."""
        live = [record for record in self.registry(state).records if record.is_live]
        before, streams = {record.id: self.compiled(state, record.id) for record in live}, self.streams
        self.streams = {**streams, spec.name: spec.stream}
        self._compile.cache_clear()
        after: dict[str, JoinQuery] = {}
        for record in live:
            try:
                after[record.id] = self.compile(record.sql)
            except SqlError as error:
                self.streams = streams
                self._compile.cache_clear()
                raise StreamError(
                    f"stream {spec.name!r} cannot change: query {record.name!r} would not compile: {error.what}",
                    hint="drop or replace that query first",
                ) from None
        self._changelog.append(_declaration(spec, ""))
        anew = [record for record in live if after[record.id] != before[record.id]]
        return tuple(self._begin_anew(record, after[record.id]) for record in anew)

    def _begin_anew(self, record: QueryRecord, compiled: JoinQuery) -> QueryRecord:
        """The same text, options and name as a new query."""
        options = replacing_options({}, record.options).to_json()
        change = Change(0, Action.CREATE, "", record.name, record.sql, options, replaces=record.id)
        accepted = self._changelog.append(change)
        self._compiled[accepted.query] = compiled
        return QueryRecord.accepted(accepted)

    def retry_bad_rows(self, stream: str, *, request: str) -> None:
        change = Change(0, Action.RETRY, "", stream, request=request)
        if self._changelog.requested(change) is None:
            self._changelog.append(change)

    def _check_sink(self, state: EngineState, name: str, options: QueryOptions, before: QueryOptions | None) -> None:
        """One of an older checkpoint stays as it is."""
        if options.sink is not None and (before is None or options.sink != before.sink):
            check_sink(name, options.sink)
            read = {**self.frame_folders, **folders_of(self.declared(state).values())}
            check_sink_place(name, options.sink, self._root, read)

    def _check_backfill(self, state: EngineState, name: str, query: JoinQuery) -> None:
        if query.aggregation is not None:
            raise QueryError(
                f"query {name!r} cannot be backfilled: its groups begin with its first batch",
                hint="create it without backfill; or backfill a query for the rows, and group what it answers",
            )
        self.adoption.check(state, name, query)

    def _check_growth(self, live: LiveQuery) -> None:
        """A query without time bounds or windows keeps rows or groups for ever: refused under a budget."""
        growing = _growing(live)
        if growing and self._options.limits.storage_budget is not None:
            raise QueryError(
                f"query {live.name!r} would keep {', '.join(growing)} for ever, and the session has a storage budget",
                hint="bound it in time, e.g. add WITHIN 10 SECONDS at the end or group by window(ts, '10 seconds'), or"
                " set storage_budget=None",
            )

    def on_change(self, hear: Callable[[], None]) -> None:
        """Called whenever a change was accepted, which some batch must apply."""
        self._changelog.on_append = hear

    # Looking

    def has_pending(self, state: EngineState) -> bool:
        """Whether there are changes that no committed batch has."""
        return bool(self._changelog.after(state.change_sequence))

    def registry(self, state: EngineState) -> Registry:
        """All queries as they stand, changes that no batch applied yet included."""
        committed, seen, registry = self._seen
        if committed is not state.registry:
            committed, seen, registry = state.registry, state.change_sequence, state.registry
        changes = self._changelog.after(seen)
        if changes:
            seen, registry = changes[-1].sequence, registry.with_pending(changes)
        self._seen = committed, seen, registry
        return registry

    def query_to_change(self, state: EngineState, action: Action, name: str, request: str) -> QueryRecord | None:
        """The query that has this name now; for a retry, the one that had it when the request was accepted."""
        registry, known = self.registry(state), self._changelog.of_request(request)
        if known is not None and (known.action, known.name) == (action, name):
            return registry[known.query]
        return registry.named(name)

    def declared(self, state: EngineState) -> dict[str, StreamSpec]:
        """The streams that were declared, also those that no batch knows yet."""
        changes = self._changelog.after(state.change_sequence)
        return {**state.declared, **declared_by(changes)}

    def compile(self, sql: str) -> JoinQuery:
        """Thread-safe, unlike the rest: a text takes milliseconds, and nobody should wait for another's."""
        if not isinstance(sql, str):
            raise QueryError(f"the query is a {type(sql).__name__}, and no text", hint="write a SELECT as a string")
        return self._compile(sql)

    def _compile_text(self, sql: str) -> JoinQuery:
        timezone = self._options.timezone
        return compile_sql(sql, self.streams, timezone=timezone, try_out=partial(try_out, timezone=timezone))

    def compiled(self, state: EngineState, query_id: str) -> JoinQuery:
        """Of a query that was accepted, perhaps by a version that took more: what it asks is not judged again."""
        if query_id not in self._compiled:
            self._compiled[query_id] = self._compile_accepted(self.registry(state)[query_id].sql)
        return self._compiled[query_id]

    def _compile_unjudged(self, sql: str) -> JoinQuery:
        return compile_sql(sql, self.streams, timezone=self._options.timezone)

    # Applying

    def applied(self, state: EngineState, batch: int) -> EngineState:
        """The state in which `batch` runs: its number, and every change that is there now."""
        changes = self._changelog.after(state.change_sequence)
        by_id: dict[str, QueryRecord] = {}
        for change in changes:
            if change.action not in (Action.STREAM, Action.RETRY):
                by_id |= {record.id: record for record in self._changed(state, by_id, change, batch)}
        sequence = changes[-1].sequence if changes else state.change_sequence
        registry = self._without_broken(state.registry.updated(by_id.values()) if by_id else state.registry, batch)
        declared = {**state.declared, **declared_by(changes)}
        retried = {change.name for change in changes if change.action is Action.RETRY}
        files = tuple(replace(f, is_retried=f.is_retried or f.stream in retried) for f in state.bad_files)
        return replace(
            state, batch=batch, change_sequence=sequence, registry=registry, declared=declared, bad_files=files
        )

    def previewed(self, state: EngineState, batch: int, sql: str) -> tuple[EngineState, QueryRecord]:
        """As `applied`, and as if a query of this text had been accepted, too."""
        self._compiled[PREVIEWED] = self.compile(sql)
        state = self.applied(state, batch)
        change = Change(0, Action.CREATE, PREVIEWED, PREVIEWED, sql)
        (record,) = self._changed(state, {}, change, batch)
        return replace(state, registry=state.registry.updated([record])), record

    def forget(self, state: EngineState) -> None:
        """What the committed state made old: entries of the changelog, queries that it does not know any more."""
        self._changelog.forget(state.change_sequence)
        known = self.registry(state).by_id
        for query_id in [query_id for query_id in self._compiled if query_id not in known]:
            del self._compiled[query_id]

    def _changed(
        self, state: EngineState, by_id: Mapping[str, QueryRecord], change: Change, batch: int
    ) -> list[QueryRecord]:
        def known(query_id: str) -> QueryRecord:
            return by_id.get(query_id) or state.registry[query_id]

        if change.action is Action.DROP:
            return [replace(known(change.query), state=QueryState.DROPPED, dropped_batch=batch)]
        if change.action is Action.SET:
            options = QueryOptions.from_json(change.options)
            return [replace(known(change.query), options=options, changed_batch=batch)]
        replaced = (
            []
            if not change.replaces
            else [replace(known(change.replaces), state=QueryState.DROPPED, dropped_batch=batch)]
        )
        try:
            compiled = self.compiled(state, change.query)
        except SqlError as error:
            created = replace(QueryRecord.accepted(change), created_batch=batch)
            return [*replaced, quarantined(created, _does_not_compile(error), batch)]
        since = complete_from(
            LiveQuery(change.query, change.name, compiled),
            batch,
            self.streams,
            state.histories,
            state.buckets,
            watermarks_of_new(compiled, state, self.streams),
            state.first_batch_by_stream,
        )
        created = replace(
            QueryRecord.accepted(change),
            state=QueryState.RUNNING,
            created_batch=batch,
            complete_from=since,
        )
        return [*replaced, created]

    def _without_broken(self, registry: Registry, batch: int) -> Registry:
        """Queries that compiled once and do not any more, with this version of Dovetail, are stopped alone."""
        broken: list[QueryRecord] = []
        for record in registry.running:
            if record.id not in self._compiled:
                try:
                    self._compiled[record.id] = self.compile(record.sql)
                except SqlError as error:
                    _log.error("query %s is stopped: %s", record.name, _does_not_compile(error))
                    broken.append(quarantined(record, _does_not_compile(error), batch))
        return registry.updated(broken) if broken else registry


def watermarks_of_new(query: JoinQuery, state: EngineState, streams: Mapping[str, Stream]) -> dict[str, int]:
    """What is below these is gone for a new query; one that decides rows begins where the last batch left off."""
    return dict(state.decided_us_by_stream) if query.lone_aliases else state.watermark_us_by_stream(streams)


def _warn_of_growth(live: LiveQuery) -> None:
    growing = _growing(live)
    if growing:
        what = textwrap.shorten(", ".join(growing), GROWTH_WIDTH, placeholder=" ...")
        _log.warning("query %s keeps %s for ever: its state grows without bound", live.name, what)


def _growing(live: LiveQuery) -> list[str]:
    return [*growing_streams(live), *growing_groups(live.query)]


def _does_not_compile(error: SqlError) -> str:
    return f"its text does not compile any more: {error.what}" + (f"; instead: {error.hint}" if error.hint else "")


def _declaration(spec: StreamSpec, request: str) -> Change:
    return Change(0, Action.STREAM, "", spec.name, options=spec.to_json(), request=request)


def declared_by(changes: Iterable[Change]) -> dict[str, StreamSpec]:
    """The streams that these changes declare, each as the last one has it."""
    return {c.name: StreamSpec.from_json(c.options) for c in changes if c.action is Action.STREAM}


def _differing(known: StreamSpec, spec: StreamSpec) -> str:
    """What is known of the fields in which the two differ, secrets aside."""
    mine, theirs = ({**s.to_json(), "options": s.shown_options} for s in (known, spec))
    # Only a hidden option differs: then the others say nothing.
    differing = [key for key in mine if mine[key] != theirs[key]] or ["options"]
    return ", ".join(f"{key} = {mine[key]!r}" for key in differing)
