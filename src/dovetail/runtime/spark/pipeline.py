"""The one streaming query: all streams united, every micro-batch run by the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import Broadcast
from pyspark.errors import StreamingQueryException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from dovetail.core.errors import SessionError
from dovetail.query.expression import columns_of
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.message import Message
from dovetail.runtime.spark.pack_columns import Packing, column_types, pack_columns, repacked_columns, union_streams
from dovetail.runtime.spark.run_spark import run_spark
from dovetail.runtime.spark.worker_errors import own_error
from dovetail.store.layout import spark_dir

RunBatch = Callable[[int, Callable[[BatchTask], list[Message]]], bool]
"""The engine's side of a batch: it calls back with the task to run."""

AVAILABLE_NOW = "available_now"
_ARROW_ROWS = 1 << 17
_FILE_MANAGER_KEY = "spark.sql.streaming.checkpointFileManagerClass"
_PLAIN_FILE_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


@dataclass(frozen=True)
class _WorkerPlan:
    """A plan as workers get it, and what to select of a batch for it."""

    epoch: int
    broadcast: Broadcast[Any]
    packing: Packing
    columns: list[Column]


class SparkPipeline:
    """Holds the streams' DataFrames and the running streaming query."""

    def __init__(self, spark: SparkSession, root: Path, run_batch: RunBatch) -> None:
        self._spark = spark
        self._root = root
        self._run_engine_batch = run_batch
        self._frames: dict[str, DataFrame] = {}
        self._streaming: StreamingQuery | None = None
        self._worker_plan: _WorkerPlan | None = None
        self._failure: Exception | None = None

    def add_stream(self, name: str, frame: DataFrame) -> None:
        self._frames[name] = frame

    @property
    def was_started(self) -> bool:
        return self._streaming is not None

    @property
    def is_active(self) -> bool:
        return self._streaming is not None and self._streaming.isActive

    def start(self, trigger: str | None) -> None:
        # Sorted by name: Spark's checkpoint knows its sources by their position.
        frames = dict(sorted(self._frames.items()))
        packing = pack_columns({name: column_types(frame.schema) for name, frame in frames.items()})
        writer = union_streams(frames, packing).writeStream.foreachBatch(self._run_batch)
        writer = writer.option("checkpointLocation", str(spark_dir(self._root)))
        self._failure = None
        with _plain_file_manager(self._spark):
            self._streaming = _with_trigger(writer, trigger).queryName("dovetail").start()

    def await_termination(self, timeout: float | None) -> bool:
        streaming = self._running()
        try:
            if timeout is None:
                streaming.awaitTermination()
                return True
            # Spark takes fractions of a second, whatever its type hint says.
            return bool(streaming.awaitTermination(timeout))  # type: ignore[arg-type]
        except StreamingQueryException:
            # Spark's exception wraps ours in pages of stack traces from both sides.
            if self._failure is not None:
                raise self._failure from None
            raise

    def process_all_available(self) -> None:
        self._running().processAllAvailable()

    def stop(self) -> None:
        if self._streaming is not None:
            self._streaming.stop()

    def _running(self) -> StreamingQuery:
        if self._streaming is None:
            raise SessionError("the session is not started", hint="call start() first")
        return self._streaming

    def _run_batch(self, batch_df: DataFrame, batch: int) -> None:
        # The batch runs in a clone of the user's Spark session, so these settings are ours alone.
        conf = batch_df.sparkSession.conf
        conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(_ARROW_ROWS))
        conf.set("spark.sql.adaptive.enabled", "false")

        def run(task: BatchTask) -> list[Message]:
            shared = self._shared_with_workers(task)
            return run_spark(task, batch_df.select(*shared.columns), shared.packing, shared.broadcast)

        try:
            self._run_engine_batch(batch, run)
        except Exception as error:
            self._failure = own_error(error)
            raise

    def _shared_with_workers(self, task: BatchTask) -> _WorkerPlan:
        """What only changes with the plan, made and sent once per epoch."""
        known = self._worker_plan
        if known is not None and known.epoch == task.plan.epoch:
            return known
        if known is not None:
            known.broadcast.unpersist()
        wanted = {
            name: column_types(self._frames[name].schema, columns) for name, columns in _wanted_columns(task).items()
        }
        packing = pack_columns(wanted)
        whole = pack_columns({name: column_types(frame.schema) for name, frame in sorted(self._frames.items())})
        broadcast = self._spark.sparkContext.broadcast((task.plan, task.streams))
        self._worker_plan = _WorkerPlan(task.plan.epoch, broadcast, packing, repacked_columns(whole, packing))
        return self._worker_plan


@contextmanager
def _plain_file_manager(spark: SparkSession) -> Iterator[None]:
    """While the streaming query starts, let Spark write its own checkpoint by plain file operations.

    The default manager forks a `chmod` or `readlink` process for every small file on a local filesystem, which
    costs a tiny batch most of its time. A rename on a mounted filesystem is atomic either way. A choice of the
    user's own stands.
    """
    if spark.conf.get(_FILE_MANAGER_KEY, None) is not None:
        yield
        return
    spark.conf.set(_FILE_MANAGER_KEY, _PLAIN_FILE_MANAGER)
    try:
        yield
    finally:
        spark.conf.unset(_FILE_MANAGER_KEY)


def _wanted_columns(task: BatchTask) -> Mapping[str, list[str]]:
    """The columns of each stream that the source operator needs, the event time always."""
    wanted: dict[str, list[str]] = {}
    for stream in task.streams:
        names = {stream.event_time} if stream.event_time else set()
        for store in task.plan.stores:
            if store.stream == stream.name:
                names |= {name for name in store.columns if stream.type_of(name) is not None}
                names |= {c.name for selection in store.selections for c in columns_of(selection)}
                names |= {store.hop_window.time_column} if store.hop_window else set()
        wanted[stream.name] = [name for name, _ in stream.columns if name in names]
    return wanted


def _with_trigger(writer: DataStreamWriter, trigger: str | None) -> DataStreamWriter:
    if trigger is None:
        return writer
    if trigger == AVAILABLE_NOW:
        return writer.trigger(availableNow=True)
    return writer.trigger(processingTime=trigger)
