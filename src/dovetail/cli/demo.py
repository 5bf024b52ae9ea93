"""`dovetail demo`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from dovetail.cli.errors import show_errors
from dovetail.core.extras import extras


@show_errors
def demo(
    seconds: Annotated[float, typer.Option(help="How long it runs.", min=1.0)] = 60.0,
    cores: Annotated[int, typer.Option(help="Cores that Spark may use.", min=1)] = 2,
    plain: Annotated[bool, typer.Option("--plain", help="Print lines, no live screen.")] = False,
) -> None:
    """Run three join queries over four live streams; two are created and one is dropped on the way."""
    # Imported here, so that `dovetail --help` does not wait for Spark's modules.
    with extras("service"):
        from dovetail.demo.run import DemoOptions, run_demo  # noqa: PLC0415

    run_demo(DemoOptions(seconds=seconds, cores=cores, is_plain=plain), Console())
