"""`dovetail serve CONFIG`."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dovetail.cli.errors import show_errors
from dovetail.core.extras import extras


@show_errors
def serve(
    config: Annotated[Path, typer.Argument(help="The configuration: YAML, see docs/configuration.md.")],
    check: Annotated[bool, typer.Option("--check", help="Only check the configuration.")] = False,
) -> None:
    """Serve continuous queries over HTTP until SIGTERM or Ctrl-C; then finish the batch and end."""
    # Imported here, so that `dovetail --help` does not wait for Spark's modules.
    with extras("service"):
        from dovetail.service.config.config import load_config  # noqa: PLC0415

    console = Console(soft_wrap=True, highlight=False, markup=False)
    loaded = load_config(config)
    if check:
        console.print(f"{config}: {len(loaded.streams)} streams, {len(loaded.queries)} queries, nothing wrong")
        return
    with extras("service"):
        from dovetail.runtime.spark.local_session import end_local_spark  # noqa: PLC0415
        from dovetail.service.config.open_spark import open_spark  # noqa: PLC0415
        from dovetail.service.serve import StopSignal  # noqa: PLC0415
        from dovetail.service.serve import serve as run  # noqa: PLC0415

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for library in ("uvicorn", "py4j"):
        logging.getLogger(library).setLevel(logging.WARNING)
    # Spark writes into the checkpoint, too, and leaves permissions to the process.
    os.umask(0o077)
    stop = StopSignal()
    stop.listen()
    spark = open_spark(loaded.spark)
    try:
        if not stop.wait(0):
            run(spark, loaded, console.print, stop)
    finally:
        end_local_spark(spark)
