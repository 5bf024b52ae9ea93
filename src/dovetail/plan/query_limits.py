"""What queries may find in a batch before they are stopped: one that explodes must not take the others with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class QueryLimits:
    """Of one query in one batch, all tasks together; None is no limit.

    `results` are its answers. `pairs` are the rows that meet at its steps, the last one included: keys, selections,
    time bounds and ranges hold for them, other predicates over several relations are still to be asked.
    `result_bytes` are those of its answers before they are written, `ms` what tasks spend on it.
    """

    results: int | None = None
    pairs: int | None = None
    result_bytes: int | None = None
    ms: float | None = None

    def are_passed_by(self, found: Found) -> bool:
        return (
            (self.results is not None and found.results > self.results)
            or (self.pairs is not None and found.pairs > self.pairs)
            or (self.result_bytes is not None and found.result_bytes > self.result_bytes)
            or (self.ms is not None and found.ms > self.ms)
        )


@dataclass(frozen=True)
class Found:
    """What a query found, in one task or in all of them; too little where a task stopped it."""

    pairs: int = 0
    results: int = 0
    result_bytes: int = 0
    ms: float = 0.0

    def __add__(self, other: Found) -> Found:
        return Found(
            self.pairs + other.pairs,
            self.results + other.results,
            self.result_bytes + other.result_bytes,
            self.ms + other.ms,
        )


@dataclass(frozen=True)
class BatchLimits:
    """Most queries have the session's limits, so only the others are named."""

    usual: QueryLimits = QueryLimits()
    own_by_query: Mapping[str, QueryLimits] = field(default_factory=dict)

    def of(self, query: str) -> QueryLimits:
        return self.own_by_query.get(query, self.usual)

    @property
    def longest_ms(self) -> float | None:
        """What any query may take at most; None if one may take as long as it likes."""
        times = [limits.ms for limits in (self.usual, *self.own_by_query.values())]
        return None if None in times else max(ms for ms in times if ms is not None)
