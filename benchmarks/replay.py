"""Files through a session, one of each stream a batch, with the engine's own report of every batch."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from benchmarks.data.workloads import LATENESS
from benchmarks.options import BenchError
from benchmarks.peers.dovetail_peer import read_back, running_query
from benchmarks.peers.spark_peer import trigger_ms
from benchmarks.verify import Answer
from dovetail import Session
from dovetail.engine.options.engine_options import with_tuning
from dovetail.runtime.report import STATISTICS

POLL_S = 0.01
"""How often a running session is asked for news: no batch is as short as this."""


@dataclass(frozen=True)
class StreamFolder:
    """A stream as files, each the stream's part of one batch; without an event time its rows are kept for ever.

    `where` is a condition on its rows that every system applies while it reads them.
    """

    name: str
    path: Path
    schema_ddl: str
    event_time: str | None = None
    where: str = "true"

    def read(self, spark: SparkSession, files_per_batch: int = 1) -> DataFrame:
        reader = spark.readStream.schema(self.schema_ddl).option("maxFilesPerTrigger", files_per_batch)
        return reader.parquet(str(self.path)).where(self.where)

    @property
    def duckdb_select(self) -> str:
        # A plain TIMESTAMP: arithmetic on TIMESTAMPTZ goes through a calendar and would slow the limit down.
        column = self.event_time
        times = f" REPLACE (make_timestamp(epoch_us({column})) AS {column})" if column else ""
        return f"SELECT *{times} FROM read_parquet('{self.path}/*.parquet') WHERE {self.where}"


def duckdb_views(streams: Sequence[StreamFolder]) -> dict[str, str]:
    return {stream.name: stream.duckdb_select for stream in streams}


@dataclass(frozen=True)
class Replay:
    """What a session said of each batch; `batch_ms` is the time from its trigger to its commit.

    `drain_s` is what a person waits for: from the call of `start` to the last commit.
    """

    batch_ms: tuple[float, ...]
    progress: tuple[Mapping[str, Any], ...]
    answer_by_name: Mapping[str, Answer]
    drain_s: float
    rows_by_name: Mapping[str, pa.Table]

    @property
    def seconds(self) -> float:
        """From the first batch's start to the last one's commit; starting a session is not in it."""
        return sum(self.batch_ms) / 1000

    @property
    def state_bytes(self) -> int:
        """What all stores hold after the last batch."""
        return sum(int(store["numBytes"]) for store in self.progress[-1]["stores"])

    @property
    def state_rows(self) -> int:
        return sum(int(store["numRows"]) for store in self.progress[-1]["stores"])

    @property
    def statistics_share(self) -> float:
        """Of all task time, what counting and sampling took."""
        taken_s, all_s = 0.0, 0.0
        for batch in self.progress:
            seconds = dict(batch["taskSeconds"])
            taken_s += seconds.pop(STATISTICS, 0.0)
            all_s += sum(seconds.values())
        return taken_s / all_s

    @property
    def matched_rows(self) -> tuple[int, ...]:
        """Per batch, the partial and whole results that its hops found."""
        return tuple(sum(int(hop["matchedRows"]) for hop in batch["hops"]) for batch in self.progress)


def replay(
    spark: SparkSession,
    streams: Sequence[StreamFolder],
    query_sql_by_name: Mapping[str, str],
    folder: Path,
    options: Mapping[str, Any],
    *,
    read_rows: bool = False,
    read: Collection[str] | None = None,
) -> Replay:
    """`read_rows`: the answers themselves, if they are few, instead of their checksums; `read`: of these queries."""
    session = Session(spark, folder, **with_tuning(options))
    try:
        for stream in streams:
            session.create_stream(stream.name, stream.read(spark), stream.event_time, LATENESS)
        queries = {name: session.create_query(sql, name=name) for name, sql in query_sql_by_name.items()}
        started = time.perf_counter()
        session.start(trigger="available_now")
        running = running_query(spark)
        reports: dict[int, Mapping[str, Any]] = {}
        is_ended = False
        while not is_ended:
            is_ended = session.await_termination(POLL_S)
            if session.progress is not None:
                reports[int(session.progress["batchId"])] = session.progress
        drain_s = time.perf_counter() - started
        failed = {name: query.status.error for name, query in queries.items() if query.status.error}
        if failed:
            raise BenchError(f"queries failed: {failed}")
        batch_ms = tuple(trigger_ms(running)) if running else ()
        if len(batch_ms) != len(reports):
            raise BenchError(f"{len(reports)} of {len(batch_ms)} batches were seen")
        wanted = {name: query for name, query in queries.items() if read is None or name in read}
        answers = {} if read_rows else read_back({name: query.results() for name, query in wanted.items()})
        rows = {name: query.to_arrow() for name, query in wanted.items()} if read_rows else {}
    finally:
        session.stop()
    return Replay(batch_ms, tuple(reports[batch] for batch in sorted(reports)), answers, drain_s, rows)
