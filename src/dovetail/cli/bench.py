"""`dovetail bench SUITE`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dovetail.cli.errors import show_errors


@show_errors
def bench(
    suite: Annotated[str, typer.Argument(help="single, queries, window, multiway, smallest or ilp.")],
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
    rows: Annotated[int | None, typer.Option(help="Input rows of one run, over all streams.")] = None,
    time_limit: Annotated[float | None, typer.Option(help="Seconds after which a peer's run is stopped.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A form under a minute, to see that it works.")] = False,
    cores: Annotated[int | None, typer.Option(help="Cores that each system may use (default: all).")] = None,
    repeats: Annotated[int | None, typer.Option(help="Runs of each measurement.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the generated data.")] = 1,
) -> None:
    """Measure Dovetail against Spark's own stream-stream joins and DuckDB, on the same data, with equal answers."""
    # Imported here, so that `dovetail --help` does not wait for Spark's modules.
    from dovetail.bench.options import BenchOptions  # noqa: PLC0415
    from dovetail.bench.run import run_suite  # noqa: PLC0415

    options = BenchOptions(
        rows=rows,
        time_limit_s=time_limit,
        quick=quick,
        cores=cores if cores is not None else os.cpu_count() or 1,
        repeats=repeats,
        seed=seed,
    )
    # Before the run, so that a path that cannot be written does not cost an hour of measuring.
    if json_file is not None:
        json_file.parent.mkdir(parents=True, exist_ok=True)
        json_file.touch()
    figures = run_suite(suite, options, Console())
    if json_file is not None:
        json_file.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
