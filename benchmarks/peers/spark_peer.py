"""Spark's own stream-stream joins over the same files, each tuned in its favour.

One streaming query per SQL query, all in one application; watermarks on every stream, so that its state
is bounded by the window; answers to Parquet files. In Spark's favour: shuffle partitions equal the cores,
no extra batch without data at the end, RocksDB with changelog checkpoints and the newest join state format.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from benchmarks.data.workloads import LATENESS, STREAM_NAMES, StreamFiles, chain_hops, time_bound
from benchmarks.measure import RunTime
from benchmarks.options import BenchError
from benchmarks.spark_session import read_stream

COMMON_SETTINGS = {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}


@dataclass(frozen=True)
class StateStore:
    """A state store that Spark offers, with the settings that choose it."""

    name: str
    settings: tuple[tuple[str, str], ...]


DEFAULT_STATE_STORE = StateStore(
    "default",
    (
        (
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
        ),
    ),
)
ROCKSDB_STATE_STORE = StateStore(
    "rocksdb",
    (
        (
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        ),
        ("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true"),
        ("spark.sql.streaming.join.stateFormatVersion", "4"),
    ),
)
STATE_STORES = (DEFAULT_STATE_STORE, ROCKSDB_STATE_STORE)


@dataclass(frozen=True)
class SparkRun:
    """How long it took, and where each query's answer lies."""

    time: RunTime
    output_by_name: Mapping[str, Path]


def run_spark(
    spark: SparkSession,
    files: StreamFiles,
    query_sql_by_name: Mapping[str, str],
    folder: Path,
    *,
    seconds_per_batch: int,
    time_limit_s: float,
    state_store: StateStore = DEFAULT_STATE_STORE,
) -> SparkRun:
    session = spark.newSession()  # settings and views of a run must not reach the next one
    for key, value in (*COMMON_SETTINGS.items(), *state_store.settings):
        session.conf.set(key, value)
    for stream in files.workload.streams:
        frame = read_stream(session, files, stream, seconds_per_batch)
        frame.withWatermark("ts", LATENESS).createOrReplaceTempView(stream)
    frames = {name: session.sql(sql) for name, sql in query_sql_by_name.items()}
    return drain(frames, folder, time_limit_s=time_limit_s, input_rows=files.workload.total_rows * len(frames))


def drain(
    frames: Mapping[str, DataFrame], folder: Path, *, time_limit_s: float, input_rows: int, is_updating: bool = False
) -> SparkRun:
    """All queries at once until their files are read or the time is up; together they read `input_rows`.

    Queries that update their answers write the groups that changed in a batch to a folder of its own.
    """
    output_by_name = {name: folder / name / "output" for name in frames}
    write = _write_updates if is_updating else _write_rows
    started = time.perf_counter()
    queries = [
        write(frame, output_by_name[name])
        .option("checkpointLocation", str(folder / name / "checkpoint"))
        .trigger(availableNow=True)
        .start()
        for name, frame in frames.items()
    ]
    is_finished = _await_all(queries, started + time_limit_s)
    seconds = time.perf_counter() - started
    done_share = 1.0 if is_finished else min(_input_rows(queries) / input_rows, 0.999)
    batch_ms = tuple(trigger_ms(queries[0])) if len(queries) == 1 else ()
    return SparkRun(RunTime(seconds, done_share, batch_ms), output_by_name)


def _write_rows(frame: DataFrame, output: Path) -> DataStreamWriter:
    return frame.writeStream.format("parquet").option("path", str(output))


def _write_updates(frame: DataFrame, output: Path) -> DataStreamWriter:
    def write(changed: DataFrame, batch: int) -> None:
        changed.write.parquet(str(output / f"batch={batch}"))

    return frame.writeStream.outputMode("update").foreachBatch(write)


def _await_all(queries: list[StreamingQuery], deadline: float) -> bool:
    try:
        for query in queries:
            remaining_s = deadline - time.perf_counter()
            if remaining_s <= 0 or not query.awaitTermination(max(1, round(remaining_s))):
                return False
        return True
    finally:
        for query in queries:
            query.stop()


def _progress_records(query: StreamingQuery) -> list[dict[str, Any]]:
    return [json.loads(progress.json) for progress in query.recentProgress]


def _input_rows(queries: list[StreamingQuery]) -> int:
    return sum(int(record["numInputRows"]) for query in queries for record in _progress_records(query))


def trigger_ms(query: StreamingQuery) -> list[float]:
    """Wall time of each batch that had rows, as Spark measures it: listing, offsets, run and commit."""
    records = _progress_records(query)
    return [float(record["durationMs"]["triggerExecution"]) for record in records if record["numInputRows"]]


def spark_cascade(relation_count: int, window_s: int) -> str:
    """A chain as Spark runs it: a join of a join, of which only the newest relation's event time goes on.

    Spark refuses a stateful operator whose input has two event-time columns
    (MULTIPLE_EVENT_TIME_COLUMNS), so each step hands on the time that the next bound needs and no other.
    """
    if relation_count > len(STREAM_NAMES):
        raise BenchError(f"there are {len(STREAM_NAMES)} streams, not {relation_count}")
    hops = chain_hops(relation_count)
    ids = "a.id AS a_id"
    source = "a"
    for i, hop in enumerate(hops):
        probe_key = f"{hop.probe}.x{hop.probe_attribute}"
        handed_on = ""
        if i + 1 < len(hops):
            handed_on = f", {hop.stored}.ts AS ts, {hop.stored}.x{hops[i + 1].probe_attribute}"
        sql = (
            f"SELECT {ids}, {hop.stored}.id AS {hop.stored}_id{handed_on} FROM {source} JOIN {hop.stored} "
            f"ON {probe_key} = {hop.stored}.x{hop.stored_attribute} "
            f"AND {time_bound(hop.probe, hop.stored, window_s)}"
        )
        ids = ", ".join(f"{hop.stored}.{name}_id" for name in STREAM_NAMES[: i + 2])
        source = f"({sql}) AS {hop.stored}"
    return sql
