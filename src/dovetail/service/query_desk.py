"""Where callers change queries: their limits and their request ids, then the session."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dovetail.core.errors import UnknownName, UnknownQuery
from dovetail.core.secret_reference import is_reference
from dovetail.engine.control.changelog import Action
from dovetail.engine.control.query_options import SINK
from dovetail.engine.control.registry import QueryRecord, QueryState
from dovetail.service.access.owners import Owners
from dovetail.service.access.rate_limit import RateLimit
from dovetail.service.access.refusals import NotYet, RoleTooLow, TooLarge, TooMany
from dovetail.service.access.tokens import Caller, Role
from dovetail.service.config.options import ServiceOptions
from dovetail.service.desired_state import DesiredState
from dovetail.service.served_session import ServedSession

RESULTS_LIMIT = "max_results_per_batch"
_RETRY_WHEN_FULL_S = 60.0
FILE_PATIENCE_S = 20.0
"""How long a request waits for streams of the file: less than clients wait for an answer, who then ask again."""


@dataclass(frozen=True)
class QueryDraft:
    """A query that a caller asks for; without a name it gets one."""

    sql: str
    name: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    may_replace: bool = False


class QueryDesk:
    """Blocking: to be called from worker threads. `key` is what the client sent as its id of the request."""

    def __init__(self, session: ServedSession, owners: Owners, options: ServiceOptions, desired: DesiredState) -> None:
        self._session = session
        self._engine = session.engine
        self._owners = owners
        self._desired = desired
        self._options = options
        self._rate = RateLimit("changes", options.limits.changes_per_s, options.limits.changes_burst)

    def create(self, caller: Caller, draft: QueryDraft, key: str) -> QueryRecord:
        self.check_change(caller, draft.options)
        self.check_length(draft.sql)
        name = draft.name or _made_up_name(caller, key)
        known = self._engine.queries.named(name)
        if draft.may_replace and known is not None:
            self._check_owner(caller, name)
            self._check_kept_sink(caller, known)
        with self._owners.claiming(name, caller.name) as claim:
            self._check_count(caller)
            options = self._with_default_limit(caller, draft.options)
            handle = self._created(draft, name, options, request_of(caller, key))
            claim.is_kept = known is None or known.id != handle.id
            self._desired.forget(name)
        return self._engine.queries.record(handle.id)

    def _created(self, draft: QueryDraft, name: str, options: Mapping[str, Any], request: str) -> Any:
        """A service answers while it still opens the streams of its file: a query that names one waits for it."""
        is_complete = self._desired.await_applied()
        try:
            return self._session.create_query(draft.sql, name, replace=draft.may_replace, request=request, **options)
        except UnknownName as error:
            if is_complete:
                raise
            if not self._desired.await_applied(FILE_PATIENCE_S):
                hint = "the service still opens streams of its file: try again in a moment"
                raise NotYet(error.what, hint=hint) from error
        return self._session.create_query(draft.sql, name, replace=draft.may_replace, request=request, **options)

    def set_options(self, caller: Caller, name: str, given: Mapping[str, Any], key: str) -> QueryRecord:
        self.check_change(caller, given)
        request = request_of(caller, key)
        record = self._engine.queries.to_change(Action.SET, name, request) or self.find(name)
        self._check_owner(caller, record.name)
        return self._engine.queries.set_options(record.id, given, request=request)

    def drop(self, caller: Caller, name: str, key: str) -> QueryRecord:
        """Dropping what is dropped is no change."""
        self.check_change(caller)
        request = request_of(caller, key)
        record = self._engine.queries.to_change(Action.DROP, name, request) or self.find(name)
        self._check_owner(caller, record.name)
        return self._engine.queries.drop(record.id, request=request)

    def find(self, name: str) -> QueryRecord:
        """The query that has this name now, else the last that had it."""
        record = self._engine.queries.named(name)
        if record is None:
            record = next((known for known in reversed(self._engine.queries.records()) if known.name == name), None)
        if record is None:
            raise UnknownQuery(f"no query {name!r}", hint="GET /v1/queries lists them")
        return record

    def check_length(self, sql: str) -> None:
        limit = self._options.limits.max_statement_chars
        if len(sql) > limit:
            raise TooLarge(f"the text has {len(sql):,} characters", hint=f"use at most {limit:,}")

    def check_change(self, caller: Caller, options: Mapping[str, Any] | None = None) -> None:
        """Once for every change: how many there were lately, and whether its options are the caller's to set."""
        self._rate.take(caller.name)
        options = options or {}
        self._check_results_limit(caller, options)
        if not caller.role.includes(Role.ADMIN) and any(is_reference(str(value)) for value in options.values()):
            raise RoleTooLow(
                "a reference is resolved with the service's own rights, so it needs the role admin",
                hint="ask an admin to create the query",
            )
        names_sink = any(key == SINK or key.startswith(f"{SINK}.") for key in options)
        if names_sink and options.get(SINK) not in self._options.open_sinks and not caller.role.includes(Role.ADMIN):
            raise RoleTooLow(
                "a sink writes wherever its options say, so it needs the role admin",
                hint=f"ask an admin, or use one of: {', '.join(self._options.open_sinks) or 'none is open to all'}",
            )

    def check_change_of(self, caller: Caller, name: str) -> None:
        """Before a statement changes a query of this name: whether it is the caller's, if there is one."""
        if self._engine.queries.named(name) is not None:
            self._check_owner(caller, name)

    def _check_owner(self, caller: Caller, name: str) -> None:
        owner = self._owners.of(name)
        if owner != caller.name and not caller.role.includes(Role.ADMIN):
            whose = "is of the service's file" if owner is None else f"belongs to {owner!r}"
            raise RoleTooLow(f"query {name!r} {whose}", hint="its owner changes it, or an admin")

    def _check_kept_sink(self, caller: Caller, replaced: QueryRecord) -> None:
        """A sink stays when its query is replaced: whoever may not choose it may not choose what goes to it either."""
        sink = replaced.options.sink
        if sink is not None and sink.format not in self._options.open_sinks and not caller.role.includes(Role.ADMIN):
            raise RoleTooLow(
                f"query {replaced.name!r} has a sink, which would stay, so replacing it needs the role admin",
                hint="ask an admin, or create a query of another name",
            )

    def _with_default_limit(self, caller: Caller, options: Mapping[str, Any]) -> Mapping[str, Any]:
        limit = self._options.limits.max_results_per_batch
        if limit is None or caller.role.includes(Role.ADMIN):
            return options
        return {RESULTS_LIMIT: limit, **options}

    def _check_results_limit(self, caller: Caller, options: Mapping[str, Any]) -> None:
        limit, given = self._options.limits.max_results_per_batch, options.get(RESULTS_LIMIT, 0)
        if limit is None or caller.role.includes(Role.ADMIN) or RESULTS_LIMIT not in options:
            return
        if not isinstance(given, int) or given > limit:
            raise RoleTooLow(f"{RESULTS_LIMIT} is {given}", hint=f"use at most {limit}; an admin may allow more")

    def _check_count(self, caller: Caller) -> None:
        """With the one that is about to be created."""
        live = {record.name for record in self._engine.queries.records() if record.state is not QueryState.DROPPED}
        limit = self._options.limits.queries_per_token
        if self._owners.count(caller.name, live) > limit:
            raise TooMany(
                f"token {caller.name!r} has {limit} queries",
                hint="drop one that is no longer needed",
                retry_after_s=_RETRY_WHEN_FULL_S,
            )


def request_of(caller: Caller, key: str) -> str:
    """Keys are the callers' own: nobody can meet another's request by chance or by guessing."""
    return f"{caller.name}/{key}" if key else ""


def _made_up_name(caller: Caller, key: str) -> str:
    """The same for every retry of a request."""
    seed = request_of(caller, key).encode() if key else uuid.uuid4().bytes
    return f"query_{hashlib.sha256(seed).hexdigest()[:10]}"
