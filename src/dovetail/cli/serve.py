"""`dovetail serve CONFIG`."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from dovetail.cli.errors import show_errors
from dovetail.cli.service_client import Url, connect
from dovetail.core.errors import ConfigError
from dovetail.core.extras import extras

if TYPE_CHECKING:
    from dovetail.service.config.config import ServiceConfig

_TIMEZONE = "spark.sql.session.timeZone"


@show_errors
def serve(
    config: Annotated[Path, typer.Argument(help="The configuration: YAML, see docs/configuration.md.")],
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Only check it: what would a start change, and what cannot be used?")
    ] = False,
    apply: Annotated[
        bool, typer.Option("--apply", help="Have the running service read its file again, and change what differs.")
    ] = False,
    url: Url = None,
) -> None:
    """Serve continuous queries over HTTP until SIGTERM or Ctrl-C; then finish the batch and end."""
    # Imported here, so that `dovetail --help` does not wait for Spark's modules.
    with extras("service"):
        from dovetail.service.config.config import load_config  # noqa: PLC0415

    console = Console(soft_wrap=True, highlight=False, markup=False)
    loaded = load_config(config, tries_places=not apply)
    if check:
        _check(config, loaded, console)
    elif apply:
        _apply(loaded, url, console)
    else:
        _serve(loaded, console)


def _check(file: Path, loaded: ServiceConfig, console: Console) -> None:
    """Compile everything against the checkpoint, which may be in use, and print the plan of changes."""
    from dovetail.engine.control.look import look_at  # noqa: PLC0415
    from dovetail.service.config.desired import Step, plan_changes  # noqa: PLC0415

    changes = plan_changes(loaded, look_at(loaded.checkpoint_dir), loaded.spark.get(_TIMEZONE, "UTC"))
    for change in changes:
        console.print(str(change))
    failed = sum(change.step is Step.FAIL for change in changes)
    if failed:
        raise ConfigError(
            f"{file}: {failed} of {len(loaded.streams)} streams and {len(loaded.queries)} queries cannot be used",
            hint="see the lines above; the others would run",
        )
    same = "" if changes else ", all as in the checkpoint"
    console.print(f"{file}: {len(loaded.streams)} streams, {len(loaded.queries)} queries, nothing wrong{same}")


def _apply(loaded: ServiceConfig, url: str | None, console: Console) -> None:
    scheme = "http" if loaded.listen.tls_certificate is None else "https"
    with connect(url or f"{scheme}://{loaded.listen.host}:{loaded.listen.port}") as client:
        changes = client.apply_file()
    for change in changes:
        words = "cannot be used" if change["step"] == "fail" else change["step"]
        what = f": {change['what']}" if change["what"] else ""
        console.print(f"line {change['line']}, {change['kind']} {change['name']}: {words}{what}")
    failed = sum(change["step"] == "fail" for change in changes)
    if failed:
        raise ConfigError(f"{failed} entries of the file cannot be used", hint="see the lines above; the others run")
    console.print(f"{len(changes)} changes" if changes else "nothing differs")


def _serve(loaded: ServiceConfig, console: Console) -> None:
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
