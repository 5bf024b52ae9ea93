"""What queries may find in a batch before they are stopped: one that explodes must not take the others with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class QueryLimits:
    """Of one query in one batch, all tasks together; None is no limit.

    `results` are its answers. `pairs` are the rows that meet at its steps, the last one included: keys, selections,
    time bounds and ranges hold for them, other predicates over several relations are still to be asked.
    """

    results: int | None = None
    pairs: int | None = None

    def are_passed_by(self, found: Found) -> bool:
        return (self.results is not None and found.results > self.results) or (
            self.pairs is not None and found.pairs > self.pairs
        )


@dataclass(frozen=True)
class Found:
    """What a query found, in one task or in all of them; too little where a task stopped it."""

    pairs: int = 0
    results: int = 0

    def __add__(self, other: Found) -> Found:
        return Found(self.pairs + other.pairs, self.results + other.results)


@dataclass(frozen=True)
class BatchLimits:
    """Most queries have the session's limits, so only the others are named."""

    usual: QueryLimits = QueryLimits()
    own_by_query: Mapping[str, QueryLimits] = field(default_factory=dict)

    def of(self, query: str) -> QueryLimits:
        return self.own_by_query.get(query, self.usual)
