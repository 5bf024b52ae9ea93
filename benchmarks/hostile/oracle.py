"""What the good queries must answer: Spark in batch over the good rows."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.hostile.judge import Answers, answers_of, difference, with_good_keys
from benchmarks.hostile.world import GOOD_QUERIES, STREAMS, Folders


def wrong_neighbours(spark: SparkSession, folders: Folders, answers: Callable[[str], pa.Table]) -> dict[str, str]:
    """Good queries that answer otherwise, and how. `answers` are those of a query, by its name."""
    oracle = spark.newSession()
    for stream in STREAMS:
        oracle.read.parquet(*map(str, folders.good[stream])).createOrReplaceTempView(stream)
    told = {
        name: difference(_good(answers(name)), _good(oracle.sql(sql).toArrow())) for name, sql in GOOD_QUERIES.items()
    }
    return {name: text for name, text in told.items() if text}


def _good(table: pa.Table) -> Answers:
    keys = [place for place, name in enumerate(table.column_names) if name in ("k", "l")]
    return with_good_keys(answers_of(table), keys)
