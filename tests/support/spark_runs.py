"""Cases on real Spark: files in, batch SQL as the oracle.

Each batch of a stream is one Parquet file. With `maxFilesPerTrigger` 1 and files of ascending age,
Spark's micro-batches are the case's batches, so lateness and query times mean the same here as in
one process.
"""

from __future__ import annotations

import os
import uuid
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from dovetail.query.closing import closed_until
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

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FIRST_FILE_AT = 1_700_000_000


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


class SparkBatchOracle:
    """Batch answers of one case by Spark SQL itself."""

    def __init__(self, spark: SparkSession, case: EngineCase, kept: KeptRows | None = None) -> None:
        self._spark = spark
        self._case = case
        self._kept = kept or keep_rows_in_time(case)

    def expected(self, query: QueryCase, complete_from: int) -> Answers:
        until = len(self._case.batches) if query.dropped_at is None else query.dropped_at
        earlier = self.answers(query.batch_sql, complete_from, query.created_at)
        return self.answers(query.batch_sql, complete_from, until) - earlier

    def answers(self, sql: str, since: int, until: int) -> Answers:
        if since >= until:
            return Counter()
        for stream in self._case.streams:
            table = rows_between(stream, self._kept, since, until)
            self._spark.createDataFrame(table, _ddl(stream)).createOrReplaceTempView(stream.name)
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
