"""Runs the demo: a Spark of its own, the script's acts on time, figures on the screen, all removed at the end."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from dovetail import Query, Session
from dovetail.core.errors import DovetailError
from dovetail.demo.figures import Figures
from dovetail.demo.invitation import invitation
from dovetail.demo.live_service import live_service
from dovetail.demo.queries import Q1, QUERIES, DemoQuery
from dovetail.demo.script import ACTS, Act
from dovetail.demo.stop_request import StopRequest
from dovetail.demo.streams import STREAMS
from dovetail.demo.view import plain_line, screen
from dovetail.runtime.spark.local_session import end_local_spark, local_spark

TRIGGER = "1 second"
LATENESS = "1 second"
LOOK_EVERY_S = 0.2
PLAIN_LINE_EVERY_S = 5.0
SAMPLE_ROWS = 3
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
        console.print("Starting Spark ...", style="dim")
        with _own_spark(folder, options.cores) as spark:
            stop.listen()
            try:
                _Show(spark, folder, options, console, stop).run()
            except Exception:
                console.print("\nThe demo failed; the end of Spark's log:", style="bold red")
                console.print("\n".join(_log_file(folder).read_text().splitlines()[-LOG_LINES:]), markup=False)
                raise


def _log_file(folder: Path) -> Path:
    return folder / "spark.log"


@contextmanager
def _own_spark(folder: Path, cores: int) -> Iterator[SparkSession]:
    """A session whose files are all below `folder`, so that nothing outlives the demo."""
    temporary = folder / "tmp"
    temporary.mkdir()
    spark = local_spark(
        "dovetail-demo",
        cores,
        log_file=_log_file(folder),
        spark__local__dir=str(temporary),
        spark__sql__warehouse__dir=str(folder / "warehouse"),
        spark__driver__extraJavaOptions=f"-Djava.io.tmpdir={temporary} -XX:-UsePerfData",
    )
    try:
        yield spark
    finally:
        end_local_spark(spark)


@dataclass
class _Show:
    spark: SparkSession
    folder: Path
    options: DemoOptions
    console: Console
    stop: StopRequest
    figures: Figures = field(init=False)
    query_by_name: dict[str, Query] = field(default_factory=dict)
    _started_at: float | None = None

    def __post_init__(self) -> None:
        self.figures = Figures([stream.name for stream in STREAMS], [query.name for query in QUERIES])
        self.invitation = invitation()
        self.session = Session(self.spark, str(self.folder / "checkpoint"))

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._started_at if self._started_at is not None else 0.0

    def run(self) -> None:
        try:
            for stream in STREAMS:
                self.session.create_stream(stream.name, stream.load(self.spark), event_time="ts", lateness=LATENESS)
            self._create(Q1)
            self.session.start(trigger=TRIGGER)
            with live_service(self.session, self.folder / "service"):
                self._wait_for_rows()
                if self.options.is_plain or not self.console.is_terminal:
                    self._play_lines()
                else:
                    self._play_screen()
            self._show_results()
        finally:
            self.session.stop()

    def _wait_for_rows(self) -> None:
        """Start the clock with the first rows: how long Java needs to warm up is not part of the script."""
        self.console.print("Waiting for the first rows ...", style="dim")
        while not self.stop.is_made and not (self.session.progress or {}).get("numInputRows"):
            self._pause()
        self._started_at = time.monotonic()

    def _pause(self) -> None:
        # Waiting on the session, not on the clock: a session that fails ends the demo with its error.
        self.session.await_termination(timeout=LOOK_EVERY_S)

    def _play_screen(self) -> None:
        with Live(console=self.console, auto_refresh=False, screen=False, vertical_overflow="crop") as live:
            for _ in self._looks():
                live.update(
                    screen(self.figures, self.elapsed_s, self.options.seconds, self.console.height, self.invitation),
                    refresh=True,
                )

    def _play_lines(self) -> None:
        self._line("\n".join(self.invitation))
        shown_events, next_line_s = 0, PLAIN_LINE_EVERY_S
        for _ in self._looks():
            for event_s, text in self.figures.events[shown_events:]:
                self._line(f"{event_s:5.1f} s  {text}")
            shown_events = len(self.figures.events)
            if self.elapsed_s >= next_line_s:
                self._line(plain_line(self.figures, self.elapsed_s))
                next_line_s += PLAIN_LINE_EVERY_S

    def _line(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _looks(self) -> Iterator[None]:
        """Yields whenever the screen may have changed, until the time is up or Ctrl-C was pressed.

        Whoever asked a question from outside is not left alone: the demo goes on until it is dropped.
        """
        acts = list(ACTS)
        while (self.elapsed_s < self.options.seconds or self.figures.has_visitors) and not self.stop.is_made:
            while acts and self.elapsed_s >= acts[0].at_share * self.options.seconds:
                self._perform(acts.pop(0))
            self.figures.read(self.session.progress, self.elapsed_s)
            yield
            self._pause()

    def _perform(self, act: Act) -> None:
        if act.kind == "create":
            self._create(act.query)
        else:
            self.query_by_name[act.query.name].drop()
            self.figures.note(self.elapsed_s, f"{act.query.name} dropped: what only it used is freed")

    def _create(self, query: DemoQuery) -> None:
        self.query_by_name[query.name] = self.session.create_query(query.sql, name=query.name)
        self.figures.note(self.elapsed_s, f"{query.name} created: {query.about}, {query.join}")

    def _show_results(self) -> None:
        about_by_query = {query.name: query.about for query in QUERIES if query.name in self.query_by_name}
        for name, about in (about_by_query | dict.fromkeys(self.figures.visitors, "asked from outside")).items():
            query = self.session.query(name)
            total = query.status.total_rows
            self.console.print(f"\n{name} {about}: {total:,} results", style="bold", highlight=False)
            self.console.print(_sample(query))
        self._line("\nNext: README.md shows the same from Python; `make bench` compares with Spark's own joins.")


def _sample(query: Query) -> Table:
    results = query.to_arrow()
    table = Table(box=None, pad_edge=False)
    for column in results.column_names:
        table.add_column(column, header_style="dim")
    for row in results.slice(0, SAMPLE_ROWS).to_pylist():
        table.add_row(*(Text(str(value)) for value in row.values()))
    return table
