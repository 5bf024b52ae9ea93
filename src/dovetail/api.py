"""The public Python API: a session over a Spark application, and handles to its queries."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import Broadcast
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from dovetail.core.errors import SessionError, StreamError
from dovetail.engine.engine import Engine
from dovetail.engine.explain import explain_plan, explain_query
from dovetail.engine.options import make_options
from dovetail.engine.registry import QueryState
from dovetail.frontend.durations import DurationError, parse_duration
from dovetail.optimizer.derive_stores import growing_streams
from dovetail.optimizer.live_query import LiveQuery
from dovetail.query.expression import columns_of
from dovetail.query.stream import Stream
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.message import Message
from dovetail.runtime.spark.pack_columns import Packing, column_types, pack_columns, repack, union_streams
from dovetail.runtime.spark.read_results import read_results
from dovetail.runtime.spark.run_spark import run_spark
from dovetail.runtime.spark.types import stream_columns
from dovetail.runtime.spark.worker_errors import own_error
from dovetail.runtime.spark.worker_python import use_own_interpreter
from dovetail.store.layout import spark_dir
from dovetail.store.vacuum import VacuumReport, vacuum

_ARROW_ROWS = 1 << 17


@dataclass(frozen=True)
class QueryStatus:
    """`complete_from` is the first batch all of whose rows the answers cover; batches are None while pending.

    `growing_streams` are the streams whose rows the query keeps for ever, because no time bound lets them go.
    """

    name: str
    state: str
    error: str | None
    created_batch: int | None
    complete_from: int | None
    dropped_batch: int | None
    total_rows: int
    growing_streams: tuple[str, ...]


class Query:
    """A handle to one continuous query."""

    def __init__(self, session: Session, query_id: str, name: str, sql: str) -> None:
        self._session = session
        self.id = query_id
        self.name = name
        self.sql = sql

    @property
    def status(self) -> QueryStatus:
        engine = self._session._engine
        record = engine.record(self.id)
        return QueryStatus(
            name=record.name,
            state=record.state.value,
            error=record.error,
            created_batch=record.created_batch,
            complete_from=record.complete_from,
            dropped_batch=record.dropped_batch,
            total_rows=record.total_rows,
            growing_streams=tuple(growing_streams(LiveQuery(self.id, self.name, engine.compiled(self.id)))),
        )

    def drop(self) -> None:
        """Stop the query at the next batch edge; its answers so far stay readable."""
        self._session._engine.drop_query(self.id)

    def results(self) -> DataFrame:
        """All committed answers so far, as a batch DataFrame."""
        engine = self._session._engine
        output, files = engine.compiled(self.id).output, engine.results(self.id)
        return read_results(self._session._spark, engine.root, output, files)

    def explain(self) -> str:
        """The query's path through the shared plan, and with whom it shares each part."""
        return explain_query(self._session._engine, self.id)

    def __repr__(self) -> str:
        status = self.status
        return f"Query({self.name!r}, {status.state}, {status.total_rows} rows)"


class Session:
    """One Spark application that runs many continuous queries as one pipeline."""

    def __init__(
        self, spark: SparkSession, checkpoint_dir: str | Path, *, trigger: str | None = None, **options: Any
    ) -> None:
        use_own_interpreter(spark)
        self._spark = spark
        self._trigger = trigger
        given = {"partitions": spark.sparkContext.defaultParallelism, **options}
        if given["partitions"] is None:
            given["partitions"] = spark.sparkContext.defaultParallelism
        given.setdefault("timezone", spark.conf.get("spark.sql.session.timeZone"))
        self._engine = Engine(_local_path(checkpoint_dir), make_options(**given))
        self._frames: dict[str, DataFrame] = {}
        self._packing: Packing | None = None
        self._streaming: StreamingQuery | None = None
        self._is_stopped = False
        self._failure: Exception | None = None
        self._shared: tuple[int, Broadcast[Any], Packing] | None = None

    # Streams and queries

    def create_stream(
        self, name: str, df: DataFrame, event_time: str | None = None, lateness: str = "0 seconds"
    ) -> None:
        """Register a streaming DataFrame. Rows more than `lateness` behind the newest are late: counted, not joined."""
        if self._streaming is not None:
            raise SessionError(
                f"stream {name!r} comes too late: the session is running",
                hint="register all streams before start(); stop and start again to add one",
            )
        if not df.isStreaming:
            raise StreamError(
                f"stream {name!r} is a batch DataFrame", hint="read it with spark.readStream instead of spark.read"
            )
        try:
            lateness_us = parse_duration(lateness)
        except DurationError as error:
            raise StreamError(f"stream {name!r}: lateness: {error}", hint=error.hint) from None
        self._engine.create_stream(Stream(name, stream_columns(name, df.schema), event_time, lateness_us))
        self._frames[name] = df

    def create_query(self, sql: str, name: str | None = None) -> Query:
        """Accept a continuous query; it takes effect with the next batch, before the start and while running."""
        record = self._engine.create_query(sql, name or f"query_{uuid.uuid4().hex[:8]}")
        return Query(self, record.id, record.name, record.sql)

    def query(self, name: str) -> Query:
        """The handle of the query that has this name now (after a restart, for example)."""
        for record in reversed(self._engine.records()):
            if record.name == name:
                return Query(self, record.id, record.name, record.sql)
        raise SessionError(f"no query {name!r}", hint=f"queries are: {', '.join(q.name for q in self.queries)}")

    @property
    def queries(self) -> list[Query]:
        """All queries that are not dropped."""
        return [
            Query(self, record.id, record.name, record.sql)
            for record in self._engine.records()
            if record.state is not QueryState.DROPPED
        ]

    # Running

    def start(self, trigger: str | None = None) -> Session:
        """Begin to run. «available_now» drains the sources and ends; «1 second» runs at that interval."""
        if self._is_stopped:
            raise SessionError(
                "the session was stopped", hint="make a new Session on the same checkpoint_dir: it goes on from there"
            )
        if self._streaming is not None and self._streaming.isActive:
            raise SessionError("the session is running already", hint="call stop() first")
        self._engine.check_ready()
        types = {name: column_types(frame.schema) for name, frame in sorted(self._frames.items())}
        self._packing = pack_columns(types)
        frames = {name: self._frames[name] for name in types}
        writer = union_streams(frames, self._packing).writeStream.foreachBatch(self._run_batch)
        writer = writer.option("checkpointLocation", str(spark_dir(self._engine.root)))
        self._streaming = _with_trigger(writer, trigger or self._trigger).queryName("dovetail").start()
        return self

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the session ends; True if it did. Raises what stopped it."""
        streaming = self._running()
        try:
            return self._await(streaming, timeout)
        except StreamingQueryException:
            # Spark's exception wraps ours in pages of stack traces from both sides.
            if self._failure is not None:
                raise self._failure from None
            raise

    def _await(self, streaming: StreamingQuery, timeout: float | None) -> bool:
        if timeout is None:
            streaming.awaitTermination()
            return True
        # Spark takes fractions of a second, whatever its type hint says.
        return bool(streaming.awaitTermination(timeout))  # type: ignore[arg-type]

    def process_all_available(self) -> None:
        """Wait until everything that the sources have now is processed and committed."""
        self._running().processAllAvailable()

    def stop(self) -> None:
        """End the session. A batch under way is not committed and runs again after the next start."""
        if self._streaming is not None:
            self._streaming.stop()
        self._is_stopped = True
        self._engine.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    # Looking

    @property
    def progress(self) -> dict[str, Any] | None:
        """Figures of the last committed batch: per stream, query, store and hop."""
        return self._engine.progress

    def explain(self) -> str:
        """The shared plan of all queries."""
        return explain_plan(self._engine)

    def vacuum(self, *, dry_run: bool = True, retention: str = "1 hour") -> VacuumReport:
        """Remove files that retries and crashes left behind; a dry run only lists them."""
        return vacuum(self._engine.root, dry_run=dry_run, retention_s=parse_duration(retention) / 1e6)

    def _running(self) -> StreamingQuery:
        if self._streaming is None:
            raise SessionError("the session is not started", hint="call start() first")
        return self._streaming

    def _run_batch(self, batch_df: DataFrame, batch: int) -> None:
        spark = batch_df.sparkSession
        # The batch runs in a clone of the user's Spark session, so these settings are ours alone.
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(_ARROW_ROWS))
        spark.conf.set("spark.sql.adaptive.enabled", "false")
        spark.conf.set("spark.sql.shuffle.partitions", str(self._engine.options.partitions))

        def run(task: BatchTask) -> list[Message]:
            shared, packing = self._shared_with_workers(task)
            if self._packing is None:
                raise SessionError("the session is not started")
            return run_spark(task, repack(batch_df, self._packing, packing), packing, shared)

        try:
            self._engine.run_batch(batch, run)
        except Exception as error:
            self._failure = own_error(error)
            raise

    def _shared_with_workers(self, task: BatchTask) -> tuple[Broadcast[Any], Packing]:
        """What only changes with the plan, sent to the workers once per epoch."""
        if self._shared is None or self._shared[0] != task.plan.epoch:
            if self._shared is not None:
                self._shared[1].unpersist()
            broadcast = self._spark.sparkContext.broadcast((task.plan, task.streams))
            types = {
                name: column_types(self._frames[name].schema, wanted) for name, wanted in _wanted_columns(task).items()
            }
            self._shared = task.plan.epoch, broadcast, pack_columns(types)
        return self._shared[1], self._shared[2]


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
    if trigger == "available_now":
        return writer.trigger(availableNow=True)
    try:
        parse_duration(trigger)
    except DurationError as error:
        raise SessionError(
            f"trigger {trigger!r}: {error}", hint="use «available_now» or an interval such as «1 second»"
        ) from None
    return writer.trigger(processingTime=trigger)


def _local_path(checkpoint_dir: str | Path) -> Path:
    text = str(checkpoint_dir)
    if text.startswith("file:"):
        text = text.removeprefix("file://").removeprefix("file:")
    if "://" in text:
        raise SessionError(
            f"checkpoint_dir {text!r} is not a path of a mounted filesystem",
            hint="give a local folder, or one of a filesystem that all executors mount (NFS, Lustre, EFS)",
        )
    return Path(text).absolute()
