"""Cases on real Spark: files in, batch SQL as the oracle.

A session costs more than what runs in it, so cases that want the same options run together in one.

Each batch of a stream is one Parquet file. With `maxFilesPerTrigger` 1 and files of ascending age,
Spark's micro-batches are the case's batches, so lateness and query times mean the same here as in
one process.
"""

from __future__ import annotations

import os
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from dovetail import Session
from dovetail.engine.options.engine_options import with_tuning
from dovetail.engine.progress.print_progress import print_progress
from dovetail.optimizer.policies import GivenPolicies
from dovetail.query.join_query import JoinQuery
from tests.support.cases import (
    CLOSED_UNTIL,
    EngineCase,
    KeptRows,
    QueryCase,
    StreamCase,
    keep_rows_in_time,
    watermarks_after,
)
from tests.support.oracles.answers import Answers, answers_of_table, rows_between
from tests.support.oracles.closing import closed_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FIRST_FILE_AT = 1_700_000_000
PATIENCE_S = 180


class FileStreams:
    """The streams of a case as folders that Parquet files are added to."""

    def __init__(self, spark: SparkSession, case: EngineCase, folder: Path) -> None:
        self._spark = spark
        self._case = case
        self._folder = folder
        for stream in case.streams:
            (folder / stream.name).mkdir(parents=True, exist_ok=True)

    def frame(self, stream: StreamCase) -> DataFrame:
        reader = self._spark.readStream.schema(_ddl(stream)).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self._folder / stream.name))

    def add_batch(self, batch: int) -> None:
        """One file per stream, also where it has no rows: files keep the streams in step."""
        tables = self._case.tables(batch)
        for stream in self._case.streams:
            table = tables.get(stream.name, stream.table(()))
            hidden = self._folder / f".{uuid.uuid4().hex}"
            pq.write_table(table, hidden)
            os.utime(hidden, (FIRST_FILE_AT + batch, FIRST_FILE_AT + batch))
            hidden.rename(self._folder / stream.name / f"batch-{batch:05d}.parquet")


def together(cases: Mapping[str, EngineCase]) -> EngineCase:
    """One case of several that share no stream; the queries of each have its name before their own."""
    longest = max(len(case.batches) for case in cases.values())
    batches = tuple(
        {
            name: rows
            for case in cases.values()
            if batch < len(case.batches)
            for name, rows in case.batches[batch].items()
        }
        for batch in range(longest)
    )
    queries = tuple(
        replace(query, name=f"{about}_{query.name}") for about, case in cases.items() for query in case.queries
    )
    return EngineCase(tuple(stream for case in cases.values() for stream in case.streams), batches, queries)


@dataclass(frozen=True)
class DrainedRun:
    """What a session knew when it had run all batches of a case."""

    answers: dict[str, Answers]
    by_spark: dict[str, Answers]
    """The same by Spark's reader, of the queries that were to be read so, too."""
    errors: dict[str, str | None]
    progress: list[dict[str, Any]]


def drain(
    spark: SparkSession,
    case: EngineCase,
    folder: Path,
    read_by_spark: Iterable[str] = (),
    policies: GivenPolicies | None = None,
    **options: Any,
) -> DrainedRun:
    """Run all batches of a case in a session of their own; by default none is small, so each has all its stages."""
    streams = FileStreams(spark, case, folder / "streams")
    given = {"partitions": 2, "key_groups": 16, "small_batch_rows": 0, **options}
    session = Session(spark, folder / "checkpoint", **with_tuning(given))
    if policies is not None:
        session.engine.plans.follow(lambda _batch: policies)
    for stream in case.streams:
        frame = streams.frame(stream)
        session.create_stream(stream.name, frame, event_time=stream.event_time, lateness=stream.lateness)
    for batch in range(len(case.batches)):
        streams.add_batch(batch)
    handles = {query.name: session.create_query(query.sql, name=query.name) for query in case.queries}
    progress: list[dict[str, Any]] = []
    session.engine.answers.listen(lambda news: progress.append(print_progress(news.figures)))
    session.start(trigger="available_now")
    session.await_termination(timeout=PATIENCE_S)
    run = DrainedRun(
        {name: answers_of_table(handle.to_arrow()) for name, handle in handles.items()},
        {name: answers_of_table(handles[name].results().toArrow()) for name in read_by_spark},
        {name: handle.status.error for name, handle in handles.items()},
        progress,
    )
    session.stop()
    return run


def await_that(condition: Callable[[], bool]) -> None:
    """Until it is so; how long that takes is the machine's matter."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"not so after {PATIENCE_S} s"
        time.sleep(0.01)


class SparkBatchOracle:
    """Batch answers of one case by Spark SQL itself, over views that nobody else sees."""

    def __init__(self, spark: SparkSession, case: EngineCase, kept: KeptRows | None = None) -> None:
        self._spark = spark.newSession()
        self._case = case
        self._kept = kept or keep_rows_in_time(case)
        self._viewed: tuple[int, int] | None = None

    def expected(self, query: QueryCase, complete_from: int) -> Answers:
        until = len(self._case.batches) if query.dropped_at is None else query.dropped_at
        earlier = self.answers(query.batch_sql, complete_from, query.created_at)
        return self.answers(query.batch_sql, complete_from, until) - earlier

    def answers(self, sql: str, since: int, until: int) -> Answers:
        if since >= until:
            return Counter()
        if self._viewed != (since, until):
            for stream in self._case.streams:
                table = rows_between(stream, self._kept, since, until)
                self._spark.createDataFrame(table, _ddl(stream)).createOrReplaceTempView(stream.name)
            self._viewed = since, until
        return answers_of_table(self._spark.sql(sql).toArrow())

    def groups(self, query: QueryCase, bound: JoinQuery, until: int) -> Answers:
        """Batch SQL of an aggregation over the rows before batch `until`."""
        bound_us = closed_until(bound, watermarks_after(self._case, until))
        moment = "NULL" if bound_us is None else f"timestamp_micros({bound_us})"
        return self.answers(query.batch_sql.replace(CLOSED_UNTIL, moment), 0, until)


def _ddl(stream: StreamCase) -> str:
    """The stream's columns as Spark declares them."""
    return ", ".join(f"{name} {'decimal(10,2)' if kind == 'decimal' else kind}" for name, kind in stream.columns)


def with_row_ids(case: EngineCase) -> EngineCase:
    """The case with a column `id` of its own per stream, unique per row, for counting what has arrived."""
    streams = tuple(replace(s, columns=(*s.columns, ("id", "bigint"))) for s in case.streams)
    next_id = 0
    batches = []
    for batch in case.batches:
        numbered = {}
        for name, rows in batch.items():
            numbered[name] = tuple((*row, next_id + position) for position, row in enumerate(rows))
            next_id += len(rows)
        batches.append(numbered)
    return replace(case, streams=streams, batches=tuple(batches))
