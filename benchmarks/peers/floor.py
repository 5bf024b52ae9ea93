"""The floor under any engine that joins in Python: read the same batches and hand the columns over, no more.

Rows cross with the settings and in as many tasks as Dovetail found best; with Spark's own the floor is half again
as high.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import reduce
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from benchmarks.data.workloads import StreamFiles
from benchmarks.measure import RunTime
from benchmarks.options import BenchError
from benchmarks.peers.spark_peer import trigger_ms
from benchmarks.spark_session import read_stream
from dovetail.runtime.spark.pipeline import crossing_settings


def run_floor(
    spark: SparkSession, files: StreamFiles, columns: Sequence[str], folder: Path, *, seconds_per_batch: int
) -> RunTime:
    frames = [
        read_stream(spark, files, stream, seconds_per_batch).select(*columns) for stream in files.workload.streams
    ]
    return hand_over(spark, frames, files.workload.total_rows, folder)


def hand_over(spark: SparkSession, frames: Sequence[DataFrame], rows: int, folder: Path) -> RunTime:
    """Streams of the same columns, batch by batch, to Python; together they must bring so many rows."""
    counted_rows: list[int] = []

    def count_batch(batch: DataFrame, _batch_id: int) -> None:
        for key, value in crossing_settings(field.dataType for field in batch.schema).items():
            batch.sparkSession.conf.set(key, value)
        counts = (
            batch.coalesce(spark.sparkContext.defaultParallelism).mapInArrow(_count_rows, "row_count bigint").collect()
        )
        counted_rows.append(sum(int(row["row_count"]) for row in counts))

    started = time.perf_counter()
    writer = reduce(DataFrame.unionAll, frames).writeStream.foreachBatch(count_batch)
    query = writer.option("checkpointLocation", str(folder)).trigger(availableNow=True).start()
    query.awaitTermination()
    seconds = time.perf_counter() - started
    if sum(counted_rows) != rows:
        raise BenchError(f"the floor counted {sum(counted_rows)} of {rows} rows")
    return RunTime(seconds, batch_ms=tuple(trigger_ms(query)))


def _count_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    row_count = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_pydict({"row_count": pa.array([row_count], pa.int64())})
