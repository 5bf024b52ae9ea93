"""Runs the demo: a Spark of its own, the show, and all removed at the end."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console

from dovetail.core.errors import DovetailError
from dovetail.demo.show import Show
from dovetail.demo.stop_request import StopRequest
from dovetail.runtime.spark.local_session import end_local_spark, local_spark

LOG_LINES = 20


@dataclass(frozen=True)
class DemoOptions:
    """How long the demo runs, on how many cores, and whether lines are wanted even in a terminal."""

    seconds: float = 60.0
    cores: int = 2
    is_plain: bool = False

    def __post_init__(self) -> None:
        if self.seconds <= 0:
            raise DovetailError("the demo needs time", hint="give --seconds a positive number")
        if self.cores < 1:
            raise DovetailError("the demo needs a core", hint="give --cores 1 or more")


def run_demo(options: DemoOptions, console: Console) -> None:
    with StopRequest() as stop, tempfile.TemporaryDirectory(prefix="dovetail-demo-") as name:
        folder = Path(name)
        show = Show(console, stop, options.seconds, is_plain=options.is_plain)
        show.announce()
        with show.repeating("Spark is starting"):
            spark = _own_spark(folder, options.cores)
        with _ended(spark):
            stop.listen()
            try:
                show.run(spark, folder)
            except Exception:
                console.print("\nThe demo failed; the end of Spark's log:", style="bold red")
                console.print("\n".join(_log_file(folder).read_text().splitlines()[-LOG_LINES:]), markup=False)
                raise
            show.say("Ending Spark ...")
        show.say("Done: nothing was left on disk")


def _log_file(folder: Path) -> Path:
    return folder / "spark.log"


def _own_spark(folder: Path, cores: int) -> SparkSession:
    """A session whose files are all below `folder`, so that nothing outlives the demo."""
    temporary = folder / "tmp"
    temporary.mkdir()
    return local_spark(
        "dovetail-demo",
        cores,
        log_file=_log_file(folder),
        spark__local__dir=str(temporary),
        spark__sql__warehouse__dir=str(folder / "warehouse"),
        spark__driver__extraJavaOptions=f"-Djava.io.tmpdir={temporary} -XX:-UsePerfData",
    )


@contextmanager
def _ended(spark: SparkSession) -> Iterator[None]:
    try:
        yield
    finally:
        end_local_spark(spark)
