"""`dovetail bench SUITE`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dovetail.cli.errors import show_errors
from dovetail.core.errors import DovetailError

SUITES_TEXT = (
    "single, queries, window, multiway, smallest, ilp, adaptive, tpch-multi, materialize, adhoc, skew, theta, "
    "aggregates, placement, partition, elastic, faults, hostile or steady."
)


@show_errors
def bench(  # noqa: PLR0913, PLR0917 - an argument is an option of the command
    suite: Annotated[str, typer.Argument(help=SUITES_TEXT)],
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the figures to this file; beside it the plot, if there is one.")
    ] = None,
    rows: Annotated[int | None, typer.Option(help="Input rows of one run, over all streams.")] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds after which a peer's run, or a point of `steady`, is stopped.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A form under a minute, to see that it works.")] = False,
    cores: Annotated[int | None, typer.Option(help="Cores that each system may use (default: all).")] = None,
    repeats: Annotated[int | None, typer.Option(help="Runs of each measurement.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the generated data.")] = 1,
    scale: Annotated[float | None, typer.Option(help="Scale of TPC-H's tables, where a suite uses them.")] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="A part of `steady`, e.g. by_queries or by_queries.500; may be repeated.")
    ] = None,
    batches: Annotated[int | None, typer.Option(help="Batches that `steady` measures of each part.")] = None,
) -> None:
    """Measure Dovetail against Spark's own stream-stream joins and DuckDB, on the same data, with equal answers."""
    # Imported here, so that `dovetail --help` does not wait for Spark's modules.
    try:
        from benchmarks.options import BenchOptions  # noqa: PLC0415
        from benchmarks.run import run_suite, write_plot  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "benchmarks":
            raise
        raise DovetailError(
            "the benchmarks are not part of the installed package",
            hint="clone Dovetail's repository, run `make setup` there, then `.venv/bin/dovetail bench SUITE`",
        ) from None

    options = BenchOptions(
        rows=rows,
        time_limit_s=time_limit,
        quick=quick,
        cores=cores if cores is not None else os.cpu_count() or 1,
        repeats=repeats,
        seed=seed,
        scale=scale,
        only=tuple(only or ()),
        batches=batches,
    )
    # Before the run, so that a path that cannot be written does not cost an hour of measuring.
    if json_file is not None:
        json_file.parent.mkdir(parents=True, exist_ok=True)
        json_file.touch()
    figures = run_suite(suite, options, Console())
    if json_file is not None:
        json_file.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
        write_plot(figures, json_file.with_suffix(".svg"))
