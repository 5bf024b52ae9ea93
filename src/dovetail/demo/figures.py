"""What the demo shows, gathered from the session's progress, batch by batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

HISTORY = 24
"""Points of a sparkline."""

SMOOTHED = 4
"""Batches over which a rate is averaged: batches are not equally long, and single ones jump."""

SHORTEST_BATCH_S = 0.05


@dataclass
class Series:
    """A count that grows, as rates between batches."""

    rates: deque[float] = field(default_factory=lambda: deque(maxlen=HISTORY))
    total: int = 0

    def add(self, count: int, elapsed_s: float | None) -> None:
        """Count; without a time, as for what was there before the first look, it says nothing about the rate."""
        self.total += count
        if elapsed_s is not None:
            self.rates.append(count / elapsed_s)

    @property
    def rate_per_s(self) -> float:
        latest = list(self.rates)[-SMOOTHED:]
        return sum(latest) / len(latest) if latest else 0.0


@dataclass(frozen=True)
class SharedPart:
    """A store or a join step, and the queries that use it."""

    kind: str
    name: str
    rows: int
    queries: tuple[str, ...]


@dataclass
class Figures:
    """All that is on the screen. `note` adds an event; `read` takes a progress record if it is new."""

    stream_names: Sequence[str]
    query_names: Sequence[str]
    by_stream: dict[str, Series] = field(init=False)
    by_query: dict[str, Series] = field(init=False)
    state_by_query: dict[str, str] = field(init=False)
    batch_ms: deque[float] = field(default_factory=lambda: deque(maxlen=HISTORY))
    batch_count: int = 0
    late_rows: int = 0
    shared_parts: tuple[SharedPart, ...] = ()
    events: list[tuple[float, str]] = field(default_factory=list)
    _placed_queries: set[str] = field(default_factory=set)
    _last_batch_id: int | None = None
    _last_read_s: float = 0.0

    def __post_init__(self) -> None:
        self.by_stream = {name: Series() for name in self.stream_names}
        self.by_query = {name: Series() for name in self.query_names}
        self.state_by_query = dict.fromkeys(self.query_names, "waiting")

    def note(self, elapsed_s: float, text: str) -> None:
        self.events.append((elapsed_s, text))

    def read(self, progress: dict[str, Any] | None, elapsed_s: float) -> bool:
        if progress is None or progress["batchId"] == self._last_batch_id:
            return False
        is_first = self._last_batch_id is None
        since_last_s = None if is_first else max(elapsed_s - self._last_read_s, SHORTEST_BATCH_S)
        self._last_batch_id, self._last_read_s = progress["batchId"], elapsed_s
        self.batch_count += 1
        self.batch_ms.append(progress["batchDuration"])
        for stream in progress["streams"]:
            self.by_stream[stream["name"]].add(stream["numInputRows"], since_last_s)
            self.late_rows += stream["lateRows"]
        for query in progress["queries"]:
            self._read_query(query, since_last_s, elapsed_s)
        listed = {query["name"] for query in progress["queries"]}
        for name, state in self.state_by_query.items():
            # Progress names a dropped query only once, in a batch that nobody may have looked at.
            if state == "running" and name not in listed:
                self.state_by_query[name] = "dropped"
        self.shared_parts = (*_stores(progress), *_steps(progress))
        self._note_placed_queries(elapsed_s)
        return True

    def _read_query(self, query: dict[str, Any], since_last_s: float | None, elapsed_s: float) -> None:
        name, total = query["name"], query["totalOutputRows"]
        if name not in self.by_query:
            self.note(elapsed_s, f"{name} created from outside")
        if name not in self.by_query or total < self.by_query[name].total:
            # One that was replaced, or dropped and created again, counts from nothing.
            self.by_query[name] = Series()
        series = self.by_query[name]
        had_results = series.total > 0
        # From the total, because a batch that came and went between two looks would be missed otherwise.
        series.add(total - series.total, since_last_s)
        self.state_by_query[name] = query["state"]
        if series.total and not had_results:
            self.note(elapsed_s, f"{name} has its first results")

    def _note_placed_queries(self, elapsed_s: float) -> None:
        """Say once for each query how much of what it needs was there already."""
        placed = {query for part in self.shared_parts for query in part.queries}
        for query in sorted(placed - self._placed_queries):
            used = [part for part in self.shared_parts if query in part.queries]
            shared = [part for part in used if len(part.queries) > 1]
            others = sorted({other for part in shared for other in part.queries} - {query})
            if others:
                what = f"{len(shared)} of its {len(used)} stores and steps"
                self.note(elapsed_s, f"{query} shares {what} with {' and '.join(others)}")
        self._placed_queries |= placed

    @property
    def visitors(self) -> list[str]:
        """Queries that somebody created through the service, the oldest first."""
        return [name for name in self.by_query if name not in self.query_names]

    @property
    def has_visitors(self) -> bool:
        return any(self.state_by_query[name] != "dropped" for name in self.visitors)

    @property
    def input_rows_per_s(self) -> float:
        return sum(series.rate_per_s for series in self.by_stream.values())


def _stores(progress: dict[str, Any]) -> list[SharedPart]:
    return [
        SharedPart("store", store["name"], store["numRows"], tuple(store["queries"])) for store in progress["stores"]
    ]


def _steps(progress: dict[str, Any]) -> list[SharedPart]:
    return [
        SharedPart(f"hop {hop['hop']}", hop["step"], hop["matchedRows"], tuple(hop["queries"]))
        for hop in progress["hops"]
    ]
