"""The queries of a session and what became of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any

from dovetail.core.errors import QueryError
from dovetail.engine.changelog import Change

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}\Z")


class QueryState(Enum):
    PENDING = "pending"  # accepted, takes effect with the next batch
    RUNNING = "running"
    QUARANTINED = "quarantined"  # failed on some row; its answers up to then stay, the others go on
    DROPPED = "dropped"


@dataclass(frozen=True)
class QueryRecord:
    """`id` is unique for ever, so that a name can be used again; batches are None until they happen.

    `keep_intermediates` off: the query probes base stores only, whatever the session keeps for others.
    """

    id: str
    name: str
    sql: str
    state: QueryState = QueryState.PENDING
    created_batch: int | None = None
    complete_from: int | None = None
    dropped_batch: int | None = None
    error: str | None = None
    total_rows: int = 0
    keep_intermediates: bool = True

    @staticmethod
    def accepted(change: Change) -> QueryRecord:
        """The query that a «create» stands for, before any batch knows it."""
        return QueryRecord(change.query, change.name, change.sql, keep_intermediates=change.keep_intermediates)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"state": self.state.value}

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> QueryRecord:
        return QueryRecord(**{**record, "state": QueryState(record["state"])})


@dataclass(frozen=True)
class Registry:
    """All queries ever, by id, in order of creation. Changes give a new value."""

    records: tuple[QueryRecord, ...] = ()

    def __getitem__(self, query_id: str) -> QueryRecord:
        return next(record for record in self.records if record.id == query_id)

    @property
    def running(self) -> tuple[QueryRecord, ...]:
        return tuple(record for record in self.records if record.state is QueryState.RUNNING)

    def named(self, name: str) -> QueryRecord | None:
        """The query that has this name now: running or quarantined, not dropped."""
        live = (QueryState.RUNNING, QueryState.QUARANTINED)
        return next((record for record in self.records if record.name == name and record.state in live), None)

    def with_record(self, record: QueryRecord) -> Registry:
        if any(known.id == record.id for known in self.records):
            return Registry(tuple(record if known.id == record.id else known for known in self.records))
        return Registry((*self.records, record))

    def changed(self, query_id: str, **fields: Any) -> Registry:
        return self.with_record(replace(self[query_id], **fields))


def check_name(name: str) -> str:
    if not _NAME.match(name):
        raise QueryError(
            f"{name!r} cannot name a query",
            hint="use letters, digits, underscores and hyphens, beginning with a letter, at most 100",
        )
    return name
