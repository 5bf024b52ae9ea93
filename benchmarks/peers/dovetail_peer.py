"""Dovetail over the same files, through its public API only."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.data.workloads import LATENESS, StreamFiles
from benchmarks.measure import RunTime
from benchmarks.options import BenchError
from benchmarks.peers.spark_peer import trigger_ms
from benchmarks.spark_session import read_stream
from benchmarks.verify import Answer, checksum_sql, number_sql
from dovetail import Session

READ_BACK_THREADS = 4


@dataclass(frozen=True)
class DovetailRun:
    """How long it took, what each query answered (if asked for), and the last batch's own report."""

    time: RunTime
    create_s: float
    answer_by_name: Mapping[str, Answer]
    last_progress: Mapping[str, object]


def run_dovetail(
    spark: SparkSession,
    files: StreamFiles,
    query_sql_by_name: Mapping[str, str],
    folder: Path,
    *,
    seconds_per_batch: int,
    read_answers: bool = True,
    **options: Any,
) -> DovetailRun:
    """Drain the files once. The clock runs from `start` to the end of the last batch's commit."""
    session = Session(spark, str(folder), **options)
    for stream in files.workload.streams:
        frame = read_stream(spark, files, stream, seconds_per_batch)
        session.create_stream(stream, frame, event_time="ts", lateness=LATENESS)
    create_started = time.perf_counter()
    queries = {name: session.create_query(sql, name=name) for name, sql in query_sql_by_name.items()}
    started = time.perf_counter()
    session.start(trigger="available_now")
    streaming_query = running_query(spark)
    session.await_termination()
    seconds = time.perf_counter() - started
    bad = {name: query.status.error for name, query in queries.items() if query.status.error}
    if bad:
        raise BenchError(f"queries failed: {bad}")
    try:
        answers = read_back({name: query.results() for name, query in queries.items()}) if read_answers else {}
        progress = dict(session.progress or {})
    finally:
        session.stop()
    batch_ms = tuple(trigger_ms(streaming_query)) if streaming_query else ()
    return DovetailRun(RunTime(seconds, batch_ms=batch_ms), started - create_started, answers, progress)


def running_query(spark: SparkSession) -> StreamingQuery | None:
    """The one query under the session; None when it drained its files before we could look."""
    active = spark.streams.active
    return active[0] if active else None


def read_back(result_by_name: Mapping[str, DataFrame]) -> dict[str, Answer]:
    with ThreadPoolExecutor(READ_BACK_THREADS) as pool:
        return dict(zip(result_by_name, pool.map(answer_of_frame, result_by_name.values()), strict=True))


def answer_of_frame(frame: DataFrame) -> Answer:
    values = number_sql(dict(frame.dtypes), is_spark=True)
    row = frame.selectExpr("count(*)", checksum_sql(values)).collect()[0]
    return Answer(int(row[0]), int(row[1]))
