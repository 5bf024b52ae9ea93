"""How `dovetail top` looks: one frame from the last batch's progress and the plan's costs."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dovetail.core.sparkline import sparkline

HISTORY = 40
FIXED_LINES = 4
"""Heads of tables, the line of what is left out, and one to spare."""
MAX_STREAMS = 8
STYLE_BY_STATE = {"running": "green", "quarantined": "bold red", "dropped": "dim"}


class SortBy(StrEnum):
    COST = "cost"
    ANSWERS = "answers"
    STATE = "state"
    NAME = "name"


@dataclass(frozen=True)
class QueryLine:
    """`share` is of the whole plan's cost; costs are None while no plan prices the query."""

    name: str
    state: str
    share: float | None
    share_ms: float | None
    alone_ms: float | None
    answers: int
    total_answers: int
    shared_parts: int
    parts: int

    def key(self, sort_by: SortBy) -> tuple[Any, ...]:
        by_key: dict[SortBy, tuple[Any, ...]] = {
            SortBy.COST: (-(self.share_ms or 0.0), self.name),
            SortBy.ANSWERS: (-self.answers, -self.total_answers, self.name),
            # Those that need a look come first.
            SortBy.STATE: (self.state == "running", self.state, self.name),
            SortBy.NAME: (self.name,),
        }
        return by_key[sort_by]


@dataclass
class TopFigures:
    """What the frames of one run are made of; `read` takes the newest progress."""

    url: str
    sort_by: SortBy = SortBy.COST
    progress: Mapping[str, Any] | None = None
    plan: Mapping[str, Any] | None = None
    batch_ms: deque[float] = field(default_factory=lambda: deque(maxlen=HISTORY))

    def read(self, progress: Mapping[str, Any] | None) -> None:
        if progress is None or (self.progress is not None and self.progress["batchId"] == progress["batchId"]):
            return
        self.progress = progress
        self.batch_ms.append(progress["batchDuration"])

    @property
    def lines(self) -> list[QueryLine]:
        if self.progress is None:
            return []
        cost_by_query = {entry["query"]: entry for entry in self.plan["cost"]["queries"]} if self.plan else {}
        parts, shared_parts = Counter[str](), Counter[str]()
        for part in (*self.progress["stores"], *self.progress["hops"]):
            parts.update(part["queries"])
            if len(part["queries"]) > 1:
                shared_parts.update(part["queries"])
        lines = []
        for query in self.progress["queries"]:
            cost = cost_by_query.get(query["name"], {})
            lines.append(
                QueryLine(
                    name=query["name"],
                    state=query["state"],
                    share=cost.get("share_of_plan"),
                    share_ms=cost.get("share_ms"),
                    alone_ms=cost.get("alone_ms"),
                    answers=query["numOutputRows"],
                    total_answers=query["totalOutputRows"],
                    shared_parts=shared_parts[query["name"]],
                    parts=parts[query["name"]],
                )
            )
        return sorted(lines, key=lambda line: line.key(self.sort_by))


def frame(figures: TopFigures, height: int | None = None) -> RenderableType:
    """All figures, on as many lines as the terminal has; without a height, all queries."""
    if figures.progress is None:
        return Text(f"dovetail {figures.url}   no batch yet: the session starts, or no rows have come", style="dim")
    streams = _streams(figures)
    headlines = _headlines(figures)
    room = None if height is None else max(height - FIXED_LINES - len(headlines) - streams.row_count, 1)
    lines = figures.lines
    hidden = 0 if room is None else max(len(lines) - room, 0)
    parts = [*headlines, streams, _queries(lines[: len(lines) - hidden])]
    if hidden:
        parts.append(Text(f"and {hidden:,} more: a taller terminal shows them, or `dovetail query list`", style="dim"))
    return Group(*parts)


def _headlines(figures: TopFigures) -> list[RenderableType]:
    progress = figures.progress or {}
    first = Text.assemble(
        ("dovetail ", "bold"),
        f"{figures.url}   batch {progress['batchId']:,}   {_queries_text(len(progress['queries']))}   "
        f"{_rate(progress['inputRowsPerSecond'])} rows/s   {progress['batchDuration']:,.0f} ms a batch ",
        (sparkline(figures.batch_ms, HISTORY), "blue"),
    )
    units = progress.get("units")
    elastic = [] if units is None else [Text(_units(units), style="dim")]
    return [first, *(Text(line, style="dim") for line in _sharing(figures.plan)), *elastic]


def _units(units: Mapping[str, Any]) -> str:
    executors = "" if units["executors"] is None else f" on {units['executors']} executors"
    coming = f", next {units['nextPartitions']}" if units["nextPartitions"] != units["partitions"] else ""
    return f"{units['partitions']} partitions{executors} at load {units['load']:.2f}{coming}"


def _sharing(plan: Mapping[str, Any] | None) -> list[str]:
    """What was measured; before that nothing is known that would be worth a figure."""
    if plan is None:
        return ["no plan yet"]
    count, work = len(plan["queries"]), plan["cost"]["measured"]
    queries = _queries_text(count)
    if work is None:
        return [f"{queries} in one plan: what sharing saves is known once a batch has run by it"]
    taken = f"{work['total_ms']:,.0f} ms of work a batch"
    if count < 2:
        return [f"{queries}: {taken}"]
    saving = work["saving_share"]
    saved = f"saves {saving:.0%}" if saving >= 0 else f"adds {-saving:.0%}"
    return [
        f"sharing {saved}: {queries} in one plan, {taken}; one by one {work['alone_ms']:,.0f} ms",
        f"{work['rows_read']:,} rows a batch are read once; one by one {work['rows_read_alone']:,} would be",
    ]


def _queries_text(count: int) -> str:
    return f"{count:,} {'query' if count == 1 else 'queries'}"


def _table(*headers: str) -> Table:
    """A borderless table: the first column to the left, figures to the right."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for position, header in enumerate(headers):
        table.add_column(header, justify="left" if position == 0 else "right", no_wrap=True)
    return table


def _streams(figures: TopFigures) -> Table:
    table = _table("stream", "rows/s", "rows in batch", "late", "watermark")
    entries = sorted((figures.progress or {})["streams"], key=lambda entry: -(entry["inputRowsPerSecond"] or 0.0))
    for entry in entries[:MAX_STREAMS]:
        table.add_row(
            Text(entry["name"]),
            _rate(entry["inputRowsPerSecond"]),
            f"{entry['numInputRows']:,}",
            f"{entry['lateRows']:,}",
            (entry["watermark"] or "-")[:19],
        )
    return table


def _queries(lines: list[QueryLine]) -> Table:
    table = _table("query", "state", "cost", "ms", "alone ms", "shared", "answers in batch", "answers")
    for line in lines:
        table.add_row(
            Text(line.name),
            Text(line.state, STYLE_BY_STATE.get(line.state, "")),
            "-" if line.share is None else f"{line.share:.0%}",
            _ms(line.share_ms),
            _ms(line.alone_ms),
            f"{line.shared_parts} of {line.parts}",
            f"{line.answers:,}",
            f"{line.total_answers:,}",
        )
    return table


def _rate(rows_per_s: float | None) -> str:
    """By the clock; not known with the first batch."""
    return "-" if rows_per_s is None else f"{rows_per_s:,.0f}"


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}"
