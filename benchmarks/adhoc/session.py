"""A running session as the suite `adhoc` sees it: files that arrive, requests that are timed, batches that are watched.

Queries are created and dropped through the service's REST interface, with tokens, audit and estimates, by a client of
one connection; all else goes through the public Python API. A stream's files arrive in order and have equally many
rows each, so the rows that batches report say which file came in which batch.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pyspark.sql import SparkSession

from benchmarks.adhoc.queries import TemplateQuery
from benchmarks.data.workloads import LATENESS, SCHEMA_DDL, StreamFiles, file_name
from benchmarks.options import BenchError
from benchmarks.replay import POLL_S
from dovetail import Session
from dovetail.api import Query
from dovetail.client import Client
from dovetail.service.access.tokens import Role, TokenFile
from dovetail.service.app import make_app
from dovetail.service.config.options import Limits, ServiceOptions
from dovetail.service.server import Server

DEADLINE_S = 120.0
"""A batch that takes longer than this is a failure, not a figure."""
LIMITS = Limits(queries_per_token=10_000, changes_per_s=1_000, changes_burst=1_000)
"""One client stands for all users of the service."""


@dataclass(frozen=True)
class Batch:
    """`began_at` is when it applied what had been asked for; both times are seconds of the wall clock."""

    number: int
    began_at: float
    committed_at: float
    rows: int
    progress: Mapping[str, Any]


@dataclass
class Asked:
    """One query of the run: when it was asked for, how long the answer took, and when it was dropped."""

    query: Query
    template: TemplateQuery
    asked_at: float
    answer_ms: float
    drop_asked_at: float | None = None


@dataclass
class Arrivals:
    """Puts a workload's files in front of a session, one of each stream at a time."""

    files: StreamFiles
    folder: Path
    arrived_at: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        for stream in self.files.workload.streams:
            (self.folder / stream).mkdir(parents=True)

    @property
    def count(self) -> int:
        return len(self.arrived_at)

    def put(self) -> None:
        if self.count == self.files.workload.file_count:
            raise BenchError("the data ran out before the measurement ended", hint="give fewer --rows")
        name = file_name(self.count)
        for stream in self.files.workload.streams:
            os.link(self.files.path(stream) / name, self.folder / stream / name)
        self.arrived_at.append(time.time())


class AdhocSession:
    """Use as a context: the session ends with it. `files_per_batch` of None takes all that has arrived."""

    def __init__(
        self, spark: SparkSession, checkpoint: Path, arrivals: Arrivals, files_per_batch: int | None = None
    ) -> None:
        self.arrivals = arrivals
        self.batches: dict[int, Batch] = {}
        self.session = Session(spark, checkpoint)
        for stream in arrivals.files.workload.streams:
            reader = spark.readStream.schema(SCHEMA_DDL)
            if files_per_batch is not None:
                reader = reader.option("maxFilesPerTrigger", files_per_batch)
            frame = reader.parquet(str(arrivals.folder / stream))
            self.session.create_stream(stream, frame, event_time="ts", lateness=LATENESS)
        self._service_dir = checkpoint.with_name(f"{checkpoint.name}-service")
        self._service: tuple[Server, Client] | None = None
        self._is_ended = threading.Event()
        self._news = threading.Condition()
        self._watch = threading.Thread(target=self._watch_batches, name="adhoc-watch", daemon=True)

    def __enter__(self) -> Self:
        self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_ended.set()
        self._watch.join()
        if self._service is not None:
            server, client = self._service
            client.close()
            server.stop()
        self.session.stop()

    def start(self) -> None:
        self.session.start()
        self._service = _served(self.session, self._service_dir)

    def create(self, name: str, template: TemplateQuery) -> Asked:
        """Through REST; before the start there is no service to ask."""
        asked_at, began = time.time(), time.perf_counter()
        if self._service is None:
            self.session.create_query(template.sql, name=name)
        else:
            self._service[1].create_query(template.sql, name)
        answer_ms = (time.perf_counter() - began) * 1e3
        return Asked(self.session.query(name), template, asked_at, answer_ms)

    def drop(self, asked: Asked) -> None:
        asked.drop_asked_at = time.time()
        if self._service is None:
            asked.query.drop()
        else:
            self._service[1].query(asked.query.name).drop()

    def await_batch(self, number: int) -> Batch:
        with self._news:
            if not self._news.wait_for(lambda: number in self.batches, DEADLINE_S):
                self.session.await_termination(0.001)  # raises what ended it
                raise BenchError(f"batch {number} did not come within {DEADLINE_S:g} s")
            return self.batches[number]

    def await_next(self) -> Batch:
        """The first batch that this session commits after now."""
        with self._news:
            known = len(self.batches)
            if not self._news.wait_for(lambda: len(self.batches) > known, DEADLINE_S):
                raise BenchError(f"no batch came within {DEADLINE_S:g} s")
            return self.batches[self.newest]

    @property
    def newest(self) -> int:
        """The number of the last committed batch; -1 before the first."""
        return max(self.batches, default=-1)

    def _watch_batches(self) -> None:
        while not self._is_ended.is_set():
            progress = self.session.progress
            if progress is not None and int(progress["batchId"]) not in self.batches:
                self._note(progress)
            self._is_ended.wait(POLL_S)

    def _note(self, progress: Mapping[str, Any]) -> None:
        committed_at = datetime.fromisoformat(str(progress["timestamp"])).timestamp()
        began_at = committed_at - float(progress["batchDuration"]) / 1e3
        number = int(progress["batchId"])
        with self._news:
            self.batches[number] = Batch(number, began_at, committed_at, int(progress["numInputRows"]), progress)
            self._news.notify_all()


def batch_by_file(batches: Mapping[int, Batch], files: StreamFiles) -> dict[str, list[int]]:
    """By stream, the batch in which each of its files came, the first file first."""
    rows_per_file = files.workload.rows_per_second * files.workload.seconds_per_file
    found: dict[str, list[int]] = {stream: [] for stream in files.workload.streams}
    for number in sorted(batches):
        for entry in batches[number].progress["streams"]:
            count, rest = divmod(int(entry["numInputRows"]), rows_per_file)
            if rest:
                raise BenchError(f"batch {number} brought a part of a file of {entry['name']}")
            found[str(entry["name"])] += [number] * count
    return found


def _served(session: Session, data_dir: Path) -> tuple[Server, Client]:
    """A service of the session on a free port of loopback, and its client."""
    options = ServiceOptions(data_dir, port=0, limits=LIMITS)
    token = TokenFile(options.tokens_file).create(f"adhoc-{time.time_ns()}", Role.ADMIN)
    server = Server(make_app(session, options), options).start()
    return server, Client(server.url, token)
