"""`dovetail stream ...`: the streams of a running service."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from dovetail.cli.errors import show_errors
from dovetail.cli.service_client import AsJson, Url, connect, print_json, print_table

if TYPE_CHECKING:
    from dovetail.client import StreamDescription

stream = typer.Typer(name="stream", help="Look at the streams of a running service.", no_args_is_help=True)


@stream.callback()
def streams() -> None:
    """Look at the streams of a running service."""


@stream.command("list")
@show_errors
def list_streams(*, as_json: AsJson = False, url: Url = None) -> None:
    """List streams with their columns."""
    with connect(url) as client:
        found = client.streams
    if as_json:
        print_json([asdict(each) for each in found])
    else:
        print_streams(found)


def print_streams(found: list[StreamDescription]) -> None:
    rows = [
        (
            each.name,
            each.event_time,
            each.lateness,
            ", ".join(f"{column.name} {column.type}" for column in each.columns),
        )
        for each in found
    ]
    print_table(("stream", "event time", "lateness", "columns"), rows)
