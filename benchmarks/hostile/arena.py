"""A session on Spark with the ten good queries, and a clock on each of its batches.

A wave is a file for each stream and the batches that take them. What ends a session is counted, and it is started
again, without the queries that were there only for the wave.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.hostile.oracle import wrong_neighbours
from benchmarks.hostile.world import GOOD_QUERIES, STREAMS, Folders, closing_rows
from dovetail import Session
from dovetail.engine.delivery.commit_news import CommitNews

HANG_S, FIRST_S = 120.0, 600.0
"""Many times what any batch or request should take; the first batch also starts workers and compiles."""
LIMITS = {
    "max_results_per_batch": 500_000,
    "max_pairs_per_batch": 1_000_000,
    "max_result_bytes_per_batch": 64 << 20,
    "max_query_ms_per_batch": 1_000.0,
}
"""What somebody who serves strangers would set; the good queries stay far below."""


@dataclass(frozen=True)
class BatchTime:
    wave: int
    ms: float
    rows: int


class Hang(Exception):
    """Something took longer than anything may."""


def within(seconds: float, act: Callable[[], object]) -> object:
    """What `act` returns or raises; `Hang` if it goes on for longer, in a thread that is left behind."""
    box: list[tuple[object, BaseException | None]] = []

    def run() -> None:
        try:
            box.append((act(), None))
        except BaseException as error:  # noqa: BLE001 - handed on
            box.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if not box:
        raise Hang(f"not done after {seconds:.0f} s")
    value, error = box[0]
    if error is not None:
        raise error
    return value


@dataclass
class Arena:
    spark: SparkSession
    root: Path
    rows: int
    batches: list[BatchTime] = field(default_factory=list)
    batches_lost: int = 0
    hangs: int = 0
    wave: int = 0
    last_failure: str = ""
    wave_files: dict[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folders = Folders(self.root / "streams")
        self.session = self._open()
        for stream in STREAMS:
            self.session.declare_stream(self.folders.spec(stream))
        for name, sql in GOOD_QUERIES.items():
            self.session.create_query(sql, name)
        self.session.start()

    def run_wave(self, during: Callable[[], object] = lambda: None) -> bool:
        """The next rows of all streams; whether they were committed. `during` runs once the files are there."""
        self.wave += 1
        self.wave_files = self.folders.add_wave(self.wave, self.rows)
        return self.settle(during)

    def settle(self, during: Callable[[], object] = lambda: None) -> bool:
        """Until all there is has been processed; False if a batch was lost or hangs, and then the session is anew."""
        try:
            during()
            within(HANG_S if self.batches else FIRST_S, self.session.process_all_available)
            if self.session.await_termination(0):
                raise RuntimeError("the session has ended")
        except Hang:
            self.hangs += 1
        except Exception as error:  # noqa: BLE001 - whatever ends a session is what is counted here
            self.batches_lost += 1
            self.last_failure = f"{type(error).__name__}: {error}"
        else:
            return True
        self.restart()
        return False

    def restart(self) -> None:
        try:
            self.session.stop(timeout=10)
        except Exception as error:  # noqa: BLE001 - it has ended, which is all that is wanted
            self.last_failure = str(error)
        self.session = self._open()
        for query in self.session.queries:
            if query.name not in GOOD_QUERIES:
                query.drop()
        self.session.start()

    def fallen_neighbours(self) -> list[str]:
        """Good queries that are not running."""
        states = {name: self.session.query(name).status for name in GOOD_QUERIES}
        return [f"{name}: {status.error}" for name, status in states.items() if status.state != "running"]

    def wrong_neighbours(self) -> dict[str, str]:
        """Good queries whose answers are not those of Spark in batch over the good rows, after one row closes all."""
        self.wave += 1
        self.folders.add_good({stream: closing_rows(self.wave) for stream in STREAMS})
        self.settle()
        return wrong_neighbours(self.spark, self.folders, lambda name: self.session.query(name).to_arrow())

    def close(self) -> None:
        self.session.stop()

    def _open(self) -> Session:
        session = Session(self.spark, self.root / "checkpoint", partitions=2, key_groups=16, **LIMITS)  # type: ignore[arg-type]
        session.engine.answers.listen(self._note)
        return session

    def _note(self, news: CommitNews) -> None:
        figures = news.figures
        self.batches.append(BatchTime(self.wave, 1e3 * figures.durations.total_s, figures.input_rows))
