"""`dovetail top`: a running service, live in a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.live import Live

from dovetail.cli.errors import show_errors
from dovetail.cli.service_client import Url, connect, output
from dovetail.cli.top_view import SortBy, TopFigures, frame

if TYPE_CHECKING:
    from dovetail.client import Client

PLAN_EVERY_S = 5.0
"""Costs move slowly, and a plan of hundreds of queries takes the service a moment to describe."""


@show_errors
def top(
    *,
    sort: Annotated[SortBy, typer.Option("--sort", help="Order of the queries.")] = SortBy.COST,
    once: Annotated[bool, typer.Option("--once", help="Print one frame and end.")] = False,
    interval: Annotated[float, typer.Option("--interval", help="Seconds between frames.", min=0.1)] = 1.0,
    url: Url = None,
) -> None:
    """Watch queries by cost, streams by rate, batch time and sharing; Ctrl-C ends it."""
    console = output()
    with connect(url) as client:
        frames = _looks(client, TopFigures(client.url, sort), interval)
        try:
            if once or not console.is_terminal:
                for figures in frames:
                    console.print(frame(figures))
                    if once:
                        return
            with Live(console=console, auto_refresh=False, screen=True) as live:
                for figures in frames:
                    live.update(frame(figures, console.height), refresh=True)
        except KeyboardInterrupt:
            return


def _looks(client: Client, figures: TopFigures, interval_s: float) -> Iterator[TopFigures]:
    plan_at = 0.0
    while True:
        figures.read(client.progress)
        if figures.progress is not None and time.monotonic() >= plan_at:
            figures.plan = client.explain("json")
            plan_at = time.monotonic() + PLAN_EVERY_S
        yield figures
        time.sleep(interval_s)
