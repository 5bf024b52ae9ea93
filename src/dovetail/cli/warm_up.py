"""`dovetail warm-up`."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import typer

from dovetail.cli.errors import show_errors
from dovetail.core.extras import extras

if TYPE_CHECKING:
    from dovetail.runtime.spark.class_archive import ClassArchive

NOTHING_LOST = "sessions work without it, and only start more slowly"
LAST_LINES = 5


@show_errors
def warm_up(*, again: Annotated[bool, typer.Option("--again", help="Make the class archive anew.")] = False) -> None:
    """Do once what would slow down the first sessions: compile kernels, archive the classes that Spark loads.

    Nothing depends on it: what cannot be done here is named, and the command still succeeds.
    """
    with extras():
        from dovetail.runtime.spark.class_archive import class_archive  # noqa: PLC0415 - see below
        from dovetail.runtime.spark.java import ensure_java  # noqa: PLC0415 - `dovetail --help` does not wait for Spark
    ensure_java()
    _tell("Compiling kernels (a minute or two, once for each version)", lambda: _practise("kernels"))
    archive = class_archive()
    if archive is None:
        typer.echo(f"No archive of Spark's classes: this Java cannot make one; {NOTHING_LOST}")
    elif archive.path.is_file() and not again:
        typer.echo("Spark's classes are archived already")
    else:
        made = archive
        _tell("Archiving Spark's classes (half a minute, once for each Java and Spark)", lambda: _make(made))


def _tell(what: str, work: Callable[[], str | None]) -> None:
    """`work` returns what went wrong."""
    typer.echo(what)
    began = time.monotonic()
    wrong = work()
    took = f"{time.monotonic() - began:.0f} s"
    typer.echo(f"  done in {took}" if wrong is None else f"  not done ({wrong}); {NOTHING_LOST}")


def _make(archive: ClassArchive) -> str | None:
    """Others see all of it or nothing: two that make it at once each write their own, and the last one stays."""
    draft = archive.path.with_name(f"{uuid4().hex[:12]}.draft")
    try:
        archive.path.parent.mkdir(parents=True, exist_ok=True)
        wrong = _practise("classes", *archive.make_options(draft))
        if wrong is None:
            draft.replace(archive.path)
        return wrong
    except OSError as error:
        return str(error)
    finally:
        with suppress(OSError):
            draft.unlink()


def _practise(*arguments: str) -> str | None:
    """In a process of its own: Java writes its archive when it ends, and only its own session may be in it."""
    command = [sys.executable, "-m", "dovetail.cli.practice", *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode == 0:
        return None
    return " / ".join((done.stderr or done.stdout).strip().splitlines()[-LAST_LINES:]) or f"exit {done.returncode}"
