"""The show itself: it says what happens from its first second on, makes the script's changes, and ends with answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from rich.console import Console
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dovetail import Query, Session
from dovetail.demo.figures import Figures
from dovetail.demo.invitation import invitation
from dovetail.demo.live_service import live_service
from dovetail.demo.queries import Q1, QUERIES, DemoQuery
from dovetail.demo.script import ACTS, Act
from dovetail.demo.stop_request import StopRequest
from dovetail.demo.streams import STREAMS
from dovetail.demo.view import plain_line, screen, value_text

TRIGGER = "1 second"
LATENESS = "1 second"
LOOK_EVERY_S = 0.2
PLAN_EVERY_S = 2.0
PLAIN_LINE_EVERY_S = 5.0
PATIENCE = 4.0
"""So many times the demo's length it waits for the first answers of all queries, then it ends without them."""
SAMPLE_ROWS = 3
BATCHES_BETWEEN_ACTS = 2


@dataclass
class Show:
    """`seconds` count from the first rows on: how long Java needs to warm up is not part of the script."""

    console: Console
    stop: StopRequest
    seconds: float
    is_plain: bool = False
    figures: Figures = field(init=False)
    _began_at: float = field(default_factory=time.monotonic)
    _plays_from_s: float | None = None
    _plan_read_s: float = 0.0
    _shown_events: int = 0
    _batches_at_act: int = 0
    _query_by_name: dict[str, Query] = field(default_factory=dict)
    _first_rows: dict[str, pa.Table] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.figures = Figures([stream.name for stream in STREAMS], [query.name for query in QUERIES])
        self.is_plain = self.is_plain or not self.console.is_terminal

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._began_at

    @property
    def played_s(self) -> float:
        return 0.0 if self._plays_from_s is None else self.elapsed_s - self._plays_from_s

    def announce(self) -> None:
        self._line("Dovetail: three join queries over four live streams, in one Spark program and one plan")
        self.say("Starting Spark ... (Java takes some seconds)")

    def say(self, text: str) -> None:
        self._line(f"{self.elapsed_s:5.1f} s  {text}", style="dim")

    @contextmanager
    def repeating(self, text: str) -> Iterator[None]:
        """Say again and again what takes so long, while it does."""
        is_over = threading.Event()
        began_s = self.elapsed_s

        def repeat() -> None:
            while not is_over.wait(PLAIN_LINE_EVERY_S):
                self.say(f"{text} since {self.elapsed_s - began_s:.0f} s")

        thread = threading.Thread(target=repeat, name="dovetail-demo", daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    def run(self, spark: SparkSession, folder: Path) -> None:
        if self.stop.is_made:
            return
        self.session = Session(spark, str(folder / "checkpoint"))
        try:
            for stream in STREAMS:
                self.session.create_stream(stream.name, stream.load(spark), event_time="ts", lateness=LATENESS)
            rates = ", ".join(f"{stream.name} {stream.rows_per_s:,}" for stream in STREAMS)
            self.say(f"Spark runs; rows a second: {rates}")
            self._create(Q1)
            if self.is_plain:
                self._print_events()
            self.session.start(trigger=TRIGGER)
            self.figures.begin(self.elapsed_s)
            with live_service(self.session, folder / "service"):
                self._wait_for_rows()
                if self.is_plain:
                    self._play_lines()
                else:
                    self._play_screen()
            if self.stop.is_made:
                self.say("Ending, as you asked: the batch under way is finished first ...")
            else:
                self._show_results()
        finally:
            self.session.stop()

    def _wait_for_rows(self) -> None:
        self.say("Waiting for the first rows ... (the first batches also compile the join kernels)")
        said_s = self.elapsed_s
        while not self.stop.is_made and not (self.session.progress or {}).get("numInputRows"):
            self.figures.read(self.session.progress, self.elapsed_s)
            if self.elapsed_s - said_s >= PLAIN_LINE_EVERY_S:
                said_s = self.elapsed_s
                self.say(self.figures.batch_under_way or "still waiting for rows")
            self._pause()
        self._plays_from_s = self.elapsed_s

    def _pause(self) -> None:
        # Waiting on the session, not on the clock: a session that fails ends the demo with its error.
        self.session.await_termination(timeout=LOOK_EVERY_S)

    def _play_screen(self) -> None:
        lines = invitation()
        with Live(console=self.console, auto_refresh=False, screen=False, vertical_overflow="crop") as live:
            for _ in self._looks():
                live.update(screen(self.figures, self.played_s, self.seconds, self.console.height, lines), refresh=True)

    def _play_lines(self) -> None:
        self._line("\n".join(invitation()))
        next_line_s = self.elapsed_s + PLAIN_LINE_EVERY_S
        for _ in self._looks():
            self._print_events()
            if self.elapsed_s >= next_line_s:
                self._line(plain_line(self.figures))
                next_line_s = self.elapsed_s + PLAIN_LINE_EVERY_S

    def _print_events(self) -> None:
        for event_s, text in self.figures.events[self._shown_events :]:
            self._line(f"{event_s:5.1f} s  {text}")
        self._shown_events = len(self.figures.events)
        for name in [name for name in self._first_rows if name in self.figures.newest_by_query]:
            self._line(f"{self.elapsed_s:5.1f} s  the first answers of {name}:")
            self.console.print(Padding(_table(self._first_rows.pop(name)), (0, 0, 0, 9)))

    def _line(self, text: str, style: str | None = None) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True, style=style)

    def _looks(self) -> Iterator[None]:
        """Yields whenever the screen may have changed, until the time is up or Ctrl-C was pressed.

        Whoever asked a question from outside is not left alone: the demo goes on until it is dropped.
        """
        acts = list(ACTS)
        while self._goes_on(acts) and not self.stop.is_made:
            if acts and self.played_s >= acts[0].at_share * self.seconds and self._is_due(acts[0]):
                self._perform(acts.pop(0))
            self._read()
            yield
            self._pause()

    def _goes_on(self, acts: list[Act]) -> bool:
        if self.figures.has_visitors or self.played_s < self.seconds:
            return True
        is_shown = not acts and all(self.figures.has_answers(query.name) for query in QUERIES)
        return not is_shown and self.played_s < PATIENCE * self.seconds

    def _is_due(self, act: Act) -> bool:
        """Each plan is looked at for two batches at least, however long they take."""
        is_seen = self.figures.batch_count >= self._batches_at_act + BATCHES_BETWEEN_ACTS
        return is_seen and self.figures.has_answers(act.after.name)

    def _read(self) -> None:
        is_new = self.figures.read(self.session.progress, self.elapsed_s)
        for name in self.figures.visitors:
            if name not in self._query_by_name:
                self._query_by_name[name] = self._followed(self.session.query(name))
        if is_new and self.elapsed_s - self._plan_read_s >= PLAN_EVERY_S:
            self._plan_read_s = self.elapsed_s
            self.figures.read_plan(self.session.explain("json"), self.elapsed_s)

    def _perform(self, act: Act) -> None:
        self._batches_at_act = self.figures.batch_count
        if act.kind == "create":
            self._create(act.query)
        else:
            self._query_by_name[act.query.name].drop()
            self.figures.note(self.elapsed_s, f"{act.query.name} dropped: what only it used is freed")

    def _create(self, query: DemoQuery) -> None:
        self.figures.note(self.elapsed_s, f"{query.name} created: {query.about}, {query.join}")
        self._query_by_name[query.name] = self._followed(self.session.create_query(query.sql, name=query.name))

    def _followed(self, query: Query) -> Query:
        """Its answers are looked at as they come, batch by batch."""

        def take(answers: pa.Table, _batch: int) -> None:
            if answers.num_rows:
                if query.name not in self.figures.newest_by_query:
                    self._first_rows[query.name] = answers.slice(0, SAMPLE_ROWS)
                self.figures.newest_by_query[query.name] = answers.slice(answers.num_rows - 1).to_pylist()[0]

        query.foreach_batch(take)
        return query

    def _show_results(self) -> None:
        about_by_query = {query.name: query.about for query in QUERIES if query.name in self._query_by_name}
        for name, about in (about_by_query | dict.fromkeys(self.figures.visitors, "asked from outside")).items():
            query = self.session.query(name)
            self.console.print(f"\n{name} {about}: {query.status.total_rows:,} answers", style="bold", highlight=False)
            self.console.print(_table(query.to_arrow().slice(0, SAMPLE_ROWS)))
        saved = "" if self.figures.saving is None else f"\nIn one plan, {self.figures.saving}.\n"
        self._line(f"{saved}\nNext: README.md shows the same from Python; docs/benchmarks.md compares with Spark.\n")


def _table(rows: pa.Table) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in rows.column_names:
        table.add_column(column, header_style="dim")
    for row in rows.to_pylist():
        table.add_row(*(Text(value_text(value)) for value in row.values()))
    return table
