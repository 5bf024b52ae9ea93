"""How the demo looks: a live screen for a terminal, plain lines for everything else."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from dovetail.core.sparkline import sparkline
from dovetail.demo.figures import Figures
from dovetail.demo.queries import QUERIES
from dovetail.demo.streams import STREAMS

COLOR_BY_QUERY = {"Q1": "cyan", "Q2": "magenta", "Q3": "yellow"}
VISITOR_COLOR = "green"
MAX_VISITORS = 3
VISITOR_WIDTH = 8
"""Of a visitor's name at the head of a column."""
STYLE_BY_STATE = {"running": "green", "dropped": "dim", "waiting": "dim", "quarantined": "bold red"}
MAX_EVENTS = 8
MIN_EVENTS = 2
FIXED_LINES = 26
"""Lines of the screen besides the events and the parts of the plan, and one to spare."""
SMALL_HEIGHT = 36
"""Below this, the streams share one line, and newest answers are left out."""
SMALL_FIXED_LINES = 15
BAR_COUNT = 16


def screen(
    figures: Figures, elapsed_s: float, seconds: float, height: int, invitation: Sequence[str] = ()
) -> RenderableType:
    """All figures, on as many lines as the terminal has: a small one shows fewer events, then fewer parts.

    `invitation` are the lines that tell what to type in a second terminal, until somebody has.
    """
    visitors = figures.visitors[-MAX_VISITORS:]
    invitation = () if visitors else invitation
    is_small = height < SMALL_HEIGHT
    fixed_lines = (SMALL_FIXED_LINES if is_small else FIXED_LINES) + len(visitors) + len(invitation)
    room = max(height - fixed_lines, 0)
    event_count = min(max(room - len(figures.shared_parts), MIN_EVENTS), MAX_EVENTS)
    return Group(
        _headline(figures, elapsed_s, seconds),
        _streams_line(figures) if is_small else _streams(figures),
        _queries(figures, visitors),
        *([] if is_small else _newest_answers(figures)),
        _shared(figures, visitors, part_count=max(room - event_count, 1)),
        _events(figures, event_count),
        *(Text(line, no_wrap=True, overflow="ignore") for line in invitation),
        Text(
            "The demo goes on while your query runs; Ctrl-C ends it" if elapsed_s > seconds else "Ctrl-C ends the demo",
            style="dim",
        ),
    )


def _headline(figures: Figures, elapsed_s: float, seconds: float) -> Text:
    line = Text.assemble(
        ("Dovetail", "bold"),
        f"   {min(elapsed_s, seconds):.0f} of {seconds:.0f} s",
        f"   {figures.input_rows_per_s:,.0f} rows/s in",
    )
    if (under_way := figures.batch_under_way) is not None:
        line.append(f"   {under_way}", style="bold")
    elif figures.batch_ms:
        line.append(f"   batch {figures.batch_ms[-1]:,.0f} ms ")
        line.append(sparkline(figures.batch_ms, 24), style="blue")
    return line


def _table(title: str, *headers: str, wide: int) -> Table:
    """A borderless table; a header that ends in a blank is aligned left; column `wide` takes the free space."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, expand=True)
    for position, header in enumerate(headers):
        table.add_column(
            header.strip(),
            justify="right" if header and not header.endswith(" ") else "left",
            no_wrap=True,
            header_style="dim",
            ratio=1 if position == wide else None,
        )
    return table


def _streams(figures: Figures) -> Table:
    table = _table("\nStreams", "", "", "rows/s", "", "rows", wide=1)
    for stream in STREAMS:
        series = figures.by_stream[stream.name]
        bars = Text(f"{sparkline(series.rates, BAR_COUNT):{BAR_COUNT}}", style="blue")
        table.add_row(stream.name, Text(stream.about, "dim"), f"{series.rate_per_s:,.0f}", bars, f"{series.total:,}")
    return table


def _streams_line(figures: Figures) -> Text:
    rates = (f"{name} {series.rate_per_s:,.0f}/s" for name, series in figures.by_stream.items())
    return Text("  ".join(rates), style="dim", no_wrap=True, overflow="ellipsis")


def _queries(figures: Figures, visitors: Sequence[str]) -> Table:
    table = _table("\nQueries", "", "", "", "", "answers/s", "", "answers", wide=1)
    shown = [(query.name, query.about, query.join) for query in QUERIES]
    for name, about, join in (*shown, *((name, "asked from outside", "") for name in visitors)):
        series, state = figures.by_query[name], figures.state_by_query[name]
        color = COLOR_BY_QUERY.get(name, VISITOR_COLOR)
        rate = f"{series.rate_per_s:,.0f}" if state == "running" else "-"
        table.add_row(
            Text(_short(name), f"bold {color}"),
            about,
            Text(join, "dim"),
            Text(state, STYLE_BY_STATE.get(state, "")),
            rate,
            Text(f"{sparkline(series.rates, BAR_COUNT):{BAR_COUNT}}", color),
            f"{series.total:,}",
        )
    return table


def _newest_answers(figures: Figures) -> list[Text]:
    """One line for each of the demo's queries, empty before it has any."""
    lines = [Text("\nNewest answers", "bold")]
    for query in QUERIES:
        row = figures.newest_by_query.get(query.name, {})
        values = "  ".join(f"{column} {value_text(value)}" for column, value in row.items())
        name = (f"{query.name}  ", f"bold {COLOR_BY_QUERY[query.name]}")
        lines.append(Text.assemble(name, values or "none yet", no_wrap=True, overflow="ellipsis"))
    return lines


def value_text(value: object) -> str:
    """All rows of the demo are of today."""
    return f"{value:%H:%M:%S.%f}"[:-3] if isinstance(value, datetime) else str(value)


def _shared(figures: Figures, visitors: Sequence[str], part_count: int) -> Table:
    names = [*(query.name for query in QUERIES), *visitors]
    title = "who uses what" if figures.saving is None else str(figures.saving)
    table = _table(f"\nOne plan: {title}", "", "", "rows", *(f"{_short(name)} " for name in names), wide=1)
    for part in figures.shared_parts[:part_count]:
        dots = [
            Text("●", COLOR_BY_QUERY.get(name, VISITOR_COLOR)) if name in part.queries else Text("·", "dim")
            for name in names
        ]
        table.add_row(Text(part.kind, "dim"), part.name, f"{part.rows:,}", *dots)
    return table


def _short(name: str) -> str:
    return name if len(name) <= VISITOR_WIDTH else f"{name[: VISITOR_WIDTH - 1]}…"


def _events(figures: Figures, event_count: int) -> Panel:
    lines = [Text(f"{elapsed_s:5.1f} s  {text}") for elapsed_s, text in figures.events[-event_count:]]
    return Panel(Group(*lines), title="Events", title_align="left", border_style="dim")


def plain_line(figures: Figures) -> str:
    """One line of figures, for a log or a pipe."""
    results = "  ".join(
        f"{name} {series.total:,} "
        + (
            f"({series.rate_per_s:,.0f}/s)"
            if figures.state_by_query[name] == "running"
            else f"({figures.state_by_query[name]})"
        )
        for name, series in figures.by_query.items()
        if figures.state_by_query[name] != "waiting"
    )
    under_way = figures.batch_under_way
    batch = under_way or f"batch {figures.batch_ms[-1] if figures.batch_ms else 0.0:,.0f} ms"
    return f"{figures.now_s:5.1f} s  in {figures.input_rows_per_s:,.0f} rows/s  {batch}  {results}"
