"""What the demo shows, gathered from the session's progress, plan and answers, batch by batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dovetail.demo.plan_parts import Saving, SharedPart, parts_of, saving_of

HISTORY = 24
"""Points of a sparkline."""

SMOOTHED = 4
"""Batches over which a rate is averaged: batches are not equally long, and single ones jump."""

SHORTEST_BATCH_S = 0.05
LONG_BATCH_S = 4.0


@dataclass
class Series:
    """A count that grows, and its rates by the clock."""

    rates: deque[float] = field(default_factory=lambda: deque(maxlen=HISTORY))
    total: int = 0

    def add(self, count: int, rate_per_s: float | None) -> None:
        """Without a rate, as of what was there before the first look, only the count."""
        self.total += count
        if rate_per_s is not None:
            self.rates.append(rate_per_s)

    @property
    def rate_per_s(self) -> float:
        latest = list(self.rates)[-SMOOTHED:]
        return sum(latest) / len(latest) if latest else 0.0


@dataclass
class Figures:
    """All that is on the screen. `note` adds an event; `read` takes a progress record if it is new.

    `newest_by_query` is an answer of the last batch that had some, by column.
    """

    stream_names: Sequence[str]
    query_names: Sequence[str]
    by_stream: dict[str, Series] = field(init=False)
    by_query: dict[str, Series] = field(init=False)
    state_by_query: dict[str, str] = field(init=False)
    batch_ms: deque[float] = field(default_factory=lambda: deque(maxlen=HISTORY))
    batch_count: int = 0
    late_rows: int = 0
    shared_parts: tuple[SharedPart, ...] = ()
    saving: Saving | None = None
    newest_by_query: dict[str, dict[str, Any]] = field(default_factory=dict)
    events: list[tuple[float, str]] = field(default_factory=list)
    now_s: float = 0.0
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
        self.now_s = elapsed_s
        if progress is None or progress["batchId"] == self._last_batch_id:
            return False
        is_first = self._last_batch_id is None
        since_last_s = None if is_first else max(elapsed_s - self._last_read_s, SHORTEST_BATCH_S)
        self._last_batch_id, self._last_read_s = progress["batchId"], elapsed_s
        self.batch_count += 1
        self.batch_ms.append(progress["batchDuration"])
        for stream in progress["streams"]:
            self.by_stream[stream["name"]].add(stream["numInputRows"], stream["inputRowsPerSecond"])
            self.late_rows += stream["lateRows"]
        for query in progress["queries"]:
            self._read_query(query, since_last_s, elapsed_s)
        listed = {query["name"] for query in progress["queries"]}
        for name, state in self.state_by_query.items():
            # Progress names a dropped query only once, in a batch that nobody may have looked at.
            if state == "running" and name not in listed:
                self.state_by_query[name] = "dropped"
        return True

    def read_plan(self, plan: Mapping[str, Any], elapsed_s: float) -> None:
        self.shared_parts = parts_of(plan)
        self._note_placed_queries(elapsed_s)
        saving = saving_of(plan)
        if saving is not None and self.saving is None:
            self.note(elapsed_s, str(saving))
        self.saving = saving or self.saving

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
        new = total - series.total
        series.add(new, None if since_last_s is None else new / since_last_s)
        self.state_by_query[name] = query["state"]
        if series.total and not had_results:
            self.note(elapsed_s, f"{name} has its first answers")

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

    def begin(self, elapsed_s: float) -> None:
        """Batches run from now on."""
        self.now_s = self._last_read_s = elapsed_s

    @property
    def batch_under_way(self) -> str | None:
        """Said of a batch that takes long, as the first ones do, which also compile the kernels."""
        since_s = self.now_s - self._last_read_s
        if since_s < LONG_BATCH_S:
            return None
        number = 0 if self._last_batch_id is None else self._last_batch_id + 1
        return f"batch {number} runs since {since_s:.0f} s"

    def has_answers(self, query: str) -> bool:
        return query in self.by_query and self.by_query[query].total > 0
