"""The queries of a session and what became of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any

from dovetail.core.errors import QueryError, SessionError, UnknownQuery
from dovetail.engine.backfill.record import Backfill, BackfillState, BackfillStatus
from dovetail.engine.control.changelog import Action, Change
from dovetail.engine.control.complete_from_text import complete_from_text
from dovetail.engine.control.query_options import QueryOptions
from dovetail.query.join_query import JoinQuery

DROPPED_REMEMBERED = 1_000
"""The state is written whole with every batch, so it cannot keep every query that ever was."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}\Z")


class QueryState(Enum):
    PENDING = "pending"  # accepted, takes effect with the next batch
    RUNNING = "running"
    QUARANTINED = "quarantined"  # failed on some row or broke a limit; its answers up to then stay, the others go on
    DROPPED = "dropped"


@dataclass(frozen=True)
class QueryRecord:
    """`id` is unique for ever, so that a name can be used again; batches are None until they happen.

    `changed_batch` is the batch with which the newest change of options took effect, `failed_batch` the one in which
    the query failed or broke a limit; `error` says how, and what to do. `complete_from` is the first batch whose rows
    the query uses itself; `answered_from` counts what its backfill brought.
    """

    id: str
    name: str
    sql: str
    state: QueryState = QueryState.PENDING
    created_batch: int | None = None
    complete_from: int | None = None
    dropped_batch: int | None = None
    changed_batch: int | None = None
    failed_batch: int | None = None
    error: str | None = None
    total_rows: int = 0
    options: QueryOptions = field(default_factory=QueryOptions)
    backfill: Backfill | None = None

    @staticmethod
    def accepted(change: Change) -> QueryRecord:
        """The query that a «create» stands for, before any batch knows it."""
        return QueryRecord(change.query, change.name, change.sql, options=QueryOptions.from_json(change.options))

    @property
    def is_live(self) -> bool:
        """Whether batches answer it, now or from the next one on."""
        return self.state in (QueryState.PENDING, QueryState.RUNNING)

    @property
    def exception(self) -> QueryError | None:
        """What stopped the query alone; None while it is not in quarantine."""
        if self.state is not QueryState.QUARANTINED:
            return None
        return QueryError(f"query {self.name!r} is stopped since batch {self.failed_batch}: {self.error}")

    @property
    def is_backfilling(self) -> bool:
        return self.state is QueryState.RUNNING and self.backfill is not None and self.backfill.is_running

    @property
    def answered_from(self) -> int | None:
        """The first batch all of whose rows the answers cover."""
        return 0 if self._is_backfilled else self.complete_from

    @property
    def _is_backfilled(self) -> bool:
        return self.backfill is not None and self.backfill.state is BackfillState.DONE

    def complete_from_text(self, query: JoinQuery) -> str | None:
        """What `answered_from` means for the query, which is this record's, compiled; None while it is pending."""
        if self.created_batch is None or self.answered_from is None:
            return None
        return complete_from_text(query, self.created_batch, self.answered_from, is_backfilled=self._is_backfilled)

    def backfill_status(self, newest_batch: int) -> BackfillStatus | None:
        """How far its backfill is, now that the session is at `newest_batch`; None if it has none, or not yet."""
        if self.backfill is None or self.created_batch is None:
            return None
        done = self.backfill.adopted_batch + 1
        total = max(done, self.created_batch)
        if self.backfill.is_running and self.complete_from:
            total = max(total, newest_batch + 1)
        return BackfillStatus(self.backfill.state.value, done, total, self.backfill.rows, self.backfill.error)

    def to_json(self) -> dict[str, Any]:
        backfill = None if self.backfill is None else self.backfill.to_json()
        return vars(self) | {"state": self.state.value, "options": self.options.to_json(), "backfill": backfill}

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> QueryRecord:
        values: dict[str, Any] = {
            "state": QueryState(record["state"]),
            "options": QueryOptions.from_json(record["options"]),
            "backfill": None if record["backfill"] is None else Backfill.from_json(record["backfill"]),
        }
        known = {**record, **values}
        if known.pop("owns_stores", False) and values["state"] is not QueryState.DROPPED:
            raise SessionError(
                f"query {record['name']!r} of this checkpoint keeps its rows for itself (copies='query'), which is no"
                " more",
                hint="run it with the Dovetail version that wrote it, or start anew with an empty checkpoint folder",
            )
        return QueryRecord(**known)


@dataclass(frozen=True)
class Registry:
    """Queries in order of creation: all that are not dropped, and the last ones that are. Changes give a new value."""

    records: tuple[QueryRecord, ...] = ()

    @cached_property
    def by_id(self) -> Mapping[str, QueryRecord]:
        return {record.id: record for record in self.records}

    @cached_property
    def _by_name(self) -> Mapping[str, QueryRecord]:
        return {record.name: record for record in self.records if record.state is not QueryState.DROPPED}

    @cached_property
    def running(self) -> tuple[QueryRecord, ...]:
        return tuple(record for record in self.records if record.state is QueryState.RUNNING)

    def __getitem__(self, query_id: str) -> QueryRecord:
        try:
            return self.by_id[query_id]
        except KeyError:
            raise UnknownQuery(f"no query {query_id!r}") from None

    def named(self, name: str) -> QueryRecord | None:
        """The query that has this name now: any that is not dropped."""
        return self._by_name.get(name)

    def updated(self, records: Iterable[QueryRecord]) -> Registry:
        """With these in place of those of the same id; new ones at the end; without the oldest that were dropped."""
        by_id = {**self.by_id, **{record.id: record for record in records}}
        dropped = [record.id for record in by_id.values() if record.state is QueryState.DROPPED]
        for query_id in dropped[:-DROPPED_REMEMBERED]:
            del by_id[query_id]
        return Registry(tuple(by_id.values()))

    def with_pending(self, changes: Iterable[Change]) -> Registry:
        """As users see it: changes that no batch applied yet make queries «pending» or «dropped»."""
        by_id: dict[str, QueryRecord] = {}
        for change in changes:
            if change.action is Action.CREATE:
                by_id[change.query] = QueryRecord.accepted(change)
                gone = change.replaces
            else:
                gone = change.query if change.action is Action.DROP else ""
            if gone:
                by_id[gone] = replace(by_id.get(gone) or self[gone], state=QueryState.DROPPED)
            if change.action is Action.SET:
                known = by_id.get(change.query) or self[change.query]
                by_id[change.query] = replace(known, options=QueryOptions.from_json(change.options))
        return self.updated(by_id.values()) if by_id else self


def quarantined(record: QueryRecord, error: str, batch: int) -> QueryRecord:
    """The query once it failed in `batch`."""
    return replace(record, state=QueryState.QUARANTINED, error=error, failed_batch=batch)


def check_name(name: Any) -> str:
    if not isinstance(name, str) or not _NAME.match(name):
        raise QueryError(
            f"{name!r} cannot name a query",
            hint="use letters, digits, underscores and hyphens, beginning with a letter, at most 100",
        )
    return name
