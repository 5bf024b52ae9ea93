"""A session on a point: batches one after another, each with the files that were put when the one before was committed.

Files are put, and processes are read, in the thread of the batch that was just committed, before Spark looks for new
files: so every batch has the files that it is meant to have, and nothing has to poll. What the readings themselves take
counts for no batch.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.data.workloads import LATENESS, SCHEMA_DDL, STREAM_NAMES
from benchmarks.options import BenchError
from benchmarks.steady.feed import Feed
from benchmarks.steady.floor import Touched
from benchmarks.steady.mixed_queries import SteadyQuery
from benchmarks.steady.point import Point
from benchmarks.steady.processes import Cpu, Processes
from dovetail import Session
from dovetail.engine.delivery.commit_news import CommitNews
from dovetail.engine.options.engine_options import with_tuning

NOT_OF_BATCHES = ("spark", "control")
"""Folders of a checkpoint with what Spark writes itself, and with wishes for batches."""
LOST_BATCH_S = 600.0


@dataclass(frozen=True)
class BatchCost:
    """`seconds` from the commit before to its own, `cpu` meanwhile; `files` that it left in the checkpoint, if counted.

    `parts_ms` are the session's own durations.
    """

    seconds: float
    cpu: Cpu
    files: int | None
    results: int
    buckets_per_store: float
    live_rows: int
    parts_ms: Mapping[str, float]
    touched: Touched


@dataclass
class _Sequence:
    """Batches that follow one another: `files` of each stream for each, and what they cost so far."""

    batches: int
    files: int
    files_counted_in: int
    deadline: float
    costs: list[BatchCost] = field(default_factory=list)
    began: tuple[float, Cpu] | None = None
    known: set[Path] | None = None
    is_over: bool = False


class SteadySession:
    """Use as a context: the session ends with it."""

    def __init__(self, spark: SparkSession, point: Point, feed: Feed, checkpoint: Path) -> None:
        self._feed = feed
        self._checkpoint = checkpoint
        self._point = point
        self._processes = Processes(spark)
        self._news = threading.Condition()
        self._commits: list[tuple[int, float]] = []
        """Of every commit: all rows up to it, and when it was."""
        self._sequence: _Sequence | None = None
        self._failure: Exception | None = None
        self._session = Session(spark, checkpoint, **with_tuning(point.tuning))
        for stream in STREAM_NAMES:
            frame = spark.readStream.schema(SCHEMA_DDL).parquet(str(feed.folder / stream))
            self._session.create_stream(stream, frame, event_time="ts", lateness=LATENESS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session.stop()

    def create(self, query_by_name: Mapping[str, SteadyQuery]) -> float:
        """Seconds that it took."""
        began = time.perf_counter()
        for name, query in query_by_name.items():
            self._session.create_query(query.sql, name=name)
        return time.perf_counter() - began

    def start(self) -> None:
        self._session.engine.answers.listen(self._hear)
        self._session.start()

    def run(self, batches: int, *, files: int = 1, files_counted_in: int = 0, deadline: float) -> list[BatchCost]:
        """So many batches and one before them that counts for nothing; fewer when the deadline passes.

        A batch has so many seconds of event time as it has files of each stream.
        """
        self._feed.write_ahead(files * (batches + 1))
        with self._news:
            sequence = self._sequence = _Sequence(batches, files, files_counted_in, deadline)
            self._put(files)
        self._await(lambda: sequence.is_over)
        self._session.process_all_available()
        return sequence.costs

    def latencies_s(self, interval_s: float, count: int) -> list[float]:
        """Files of each stream come one every so often; each one's time from then to its commit."""
        self._feed.write_ahead(count)
        with self._news:
            self._sequence = None
        first, due_at = self._feed.batches, time.monotonic()
        for _ in range(count):
            time.sleep(max(0.0, due_at - time.monotonic()))
            due_at += interval_s
            with self._news:
                self._feed.put()
        self._await(self._is_all_committed)
        self._session.process_all_available()
        return [self._committed_at(number) - self._feed.put_at[number] for number in range(first, first + count)]

    def largest_worker_gb(self) -> tuple[float, float]:
        return self._processes.largest_worker_gb()

    def answer(self, name: str) -> pa.Table:
        return self._session.query(name).to_arrow()

    def _hear(self, _news: CommitNews) -> None:
        with self._news:
            try:
                self._note_commit()
            except Exception as error:  # noqa: BLE001 - it is raised where the batches are waited for
                self._failure = error
            self._news.notify_all()

    def _note_commit(self) -> None:
        # Before anything is asked of the session: making its progress is no part of a batch.
        ended = time.perf_counter(), self._processes.cpu()
        progress = self._session.progress
        if progress is None:
            raise BenchError("a batch was committed without progress")
        failed = [query["name"] for query in progress["queries"] if query["state"] != "running"]
        if failed:
            raise BenchError(f"queries that do not run: {', '.join(failed)}")
        committed_at = datetime.fromisoformat(str(progress["timestamp"])).timestamp()
        before = self._commits[-1][0] if self._commits else 0
        self._commits.append((before + int(progress["numInputRows"]), committed_at))
        if self._sequence is not None and self._is_all_committed():
            self._end_batch(self._sequence, progress, *ended)

    def _end_batch(self, sequence: _Sequence, progress: Mapping[str, Any], ended: float, cpu: Cpu) -> None:
        if sequence.began is not None:
            began, cpu_before = sequence.began
            files = None if sequence.known is None else len(self._file_paths() - sequence.known)
            sequence.costs.append(_cost(progress, ended - began, cpu.since(cpu_before), files))
        done = len(sequence.costs)
        if done == sequence.batches or time.monotonic() > sequence.deadline:
            sequence.is_over = True
            self._sequence = None
            return
        sequence.known = self._file_paths() if done < sequence.files_counted_in else None
        self._put(sequence.files)
        sequence.began = time.perf_counter(), self._processes.cpu()

    def _put(self, files: int) -> None:
        for _ in range(files):
            self._feed.put()

    def _is_all_committed(self) -> bool:
        return bool(self._commits) and self._commits[-1][0] >= self._feed.batches * self._point.rows_per_batch

    def _committed_at(self, number: int) -> float:
        """When all of a second's files were."""
        rows = (number + 1) * self._point.rows_per_batch
        return next(at for committed, at in self._commits if committed >= rows)

    def _await(self, is_so: Callable[[], bool]) -> None:
        with self._news:
            heard = len(self._commits)
            while not is_so():
                is_news = self._news.wait(LOST_BATCH_S)
                if self._failure is not None:
                    raise self._failure
                if not is_news or len(self._commits) == heard:
                    self._session.await_termination(0.001)  # raises what ended it
                    raise BenchError(f"no batch was committed within {LOST_BATCH_S:g} s")
                heard = len(self._commits)

    def _file_paths(self) -> set[Path]:
        return {
            path
            for entry in self._checkpoint.iterdir()
            if entry.name not in NOT_OF_BATCHES
            for path in (entry.rglob("*") if entry.is_dir() else (entry,))
            if path.is_file()
        }


def _cost(progress: Mapping[str, Any], seconds: float, cpu: Cpu, files: int | None) -> BatchCost:
    stores = progress["stores"]
    return BatchCost(
        seconds,
        cpu,
        files,
        results=sum(int(query["numOutputRows"]) for query in progress["queries"]),
        buckets_per_store=sum(int(store["numBuckets"]) for store in stores) / len(stores),
        live_rows=sum(int(store["numRows"]) for store in stores),
        parts_ms=dict(progress["durationMs"]),
        touched=Touched.in_batch(progress),
    )
