"""The one streaming query: all streams united, every micro-batch run by the engine.

It reads only the columns that some query needs. A query that needs more restarts it between two batches, and so does
a new stream, if Dovetail opens all of them itself; Spark's checkpoint takes it on from there.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark import Broadcast
from pyspark.errors import StreamingQueryException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import BinaryType, DataType, StringType

from dovetail.core.errors import DovetailError, SessionError, StreamError
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.wanted_columns import wanted_columns
from dovetail.query.stream import Stream
from dovetail.query.stream_spec import CONTROL, StreamSpec
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.message import Message
from dovetail.runtime.source_failure import SourceFailure
from dovetail.runtime.spark.batch_gate import BatchGate, BatchStopped
from dovetail.runtime.spark.pack_columns import Packing, column_types, pack_columns, repacked_columns, union_streams
from dovetail.runtime.spark.run_spark import run_spark
from dovetail.runtime.spark.sources.control_source import ControlSource
from dovetail.runtime.spark.sources.failing_sources import FIRST_RETRY_S, SLOWEST_RETRY_S, FailingSources
from dovetail.runtime.spark.sources.open_stream import check_source, named_sources, open_stream
from dovetail.runtime.spark.sources.source_offsets import read_offsets, restore_offsets
from dovetail.runtime.spark.sources.unreadable_files import BatchOfFiles
from dovetail.runtime.spark.streaming_run import StreamingRun
from dovetail.runtime.spark.worker_errors import own_error, task_failure
from dovetail.store.bad_rows import PLACE_COLUMNS
from dovetail.store.chain import Chain
from dovetail.store.layout import spark_dir
from dovetail.store.manifest import Arrival, Arrived
from dovetail.store.source_log import mend_spark_dir, read_source_log

RunBatch = Callable[[int, Callable[[BatchTask], list[Message]], Arrived], bool]
"""The engine's side of a batch: it calls back with the task to run. With it comes how far sources are read."""

ReadColumns = Mapping[str, set[str]]
"""Column names by stream."""

AVAILABLE_NOW = "available_now"
MOST_RESTARTS = 3
"""After failures that no source is at fault for, without a batch between them."""
_log = logging.getLogger("dovetail")
_FILE_MANAGER_KEY = "spark.sql.streaming.checkpointFileManagerClass"
_PLAIN_FILE_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


@dataclass(frozen=True)
class _WorkerPlan:
    """A plan as workers get it, and what to select of a batch of `read` columns for it: None means all of them."""

    plan: SharedPlan
    streams: tuple[Stream, ...]
    read: Packing
    broadcast: Broadcast[Any]
    packing: Packing
    columns: list[Column] | None

    def serves(self, task: BatchTask, read: Packing) -> bool:
        """By the very plan, not by its epoch: two tries of one batch may have different plans for the same epoch."""
        return self.plan is task.plan and self.streams == task.streams and self.read is read


class SparkPipeline:
    """Holds the streams' DataFrames and the running streaming query."""

    def __init__(
        self, spark: SparkSession, chain: Chain, run_batch: RunBatch, needed_columns: Callable[[], ReadColumns]
    ) -> None:
        """`needed_columns` are those that queries need now, of all streams."""
        self._spark = spark
        self._chain = chain
        self._run_engine_batch = run_batch
        self._sources: dict[str, DataFrame | StreamSpec] = {}
        self._frames: dict[str, DataFrame] = {}
        # Held while the streaming query is replaced, so that nobody takes the old one's end for the session's.
        self._lock = threading.RLock()
        self._gate = BatchGate()
        self.control = ControlSource(chain.root)
        self._run: StreamingRun | None = None
        self._trigger: str | None = None
        self._read = pack_columns({})
        self._worker_plan: _WorkerPlan | None = None
        self._needed_columns = needed_columns
        self._failing = FailingSources(partial(check_source, spark), self._bring_back)
        self._left_out_offsets: dict[str, str] = {}
        self._restarts = 0

    def add_stream(self, name: str, source: DataFrame | StreamSpec) -> None:
        self._sources[name] = source

    def declare_stream(self, spec: StreamSpec, accept: Callable[[], None]) -> None:
        """Add or change a stream, also while running; `accept` tells the engine while no batch runs."""
        with self._lock:
            if not self.is_active:
                accept()
                self._sources[spec.name] = spec
                return
            self._check_named(spec.name)
            columns = self._read.columns_by_stream
            with self._restarted(f"reading stream {spec.name} as it is declared now", columns):
                accept()
                self._sources[spec.name] = spec
                self._failing.forget(spec.name)

    def _check_named(self, name: str) -> None:
        unnamed = sorted(name for name, source in self._sources.items() if isinstance(source, DataFrame))
        if unnamed:
            raise SessionError(
                f"stream {name!r} comes too late: the session runs and reads {', '.join(unnamed)} from DataFrames",
                hint="declare every stream of a checkpoint: then more can come at any time",
            )

    @property
    def was_started(self) -> bool:
        return self._run is not None

    @property
    def is_active(self) -> bool:
        with self._lock:
            return self._run is not None and not self._run.is_over()

    @property
    def is_batch_of_this_thread(self) -> bool:
        return self._gate.is_entered_here

    def start(self, trigger: str | None, columns: ReadColumns) -> None:
        with self._lock:
            self._trigger = trigger
            self._start(columns)

    def read_more(self, columns: ReadColumns, is_wanted: Callable[[], bool]) -> None:
        """Before a query that needs these columns takes effect: have the running streaming query read them too.

        `is_wanted` is asked first if it must restart for them, and may raise what refuses the query.
        """
        with self._lock:
            known = self._read.columns_by_stream
            # A stream that is left out now gets its columns when it is back.
            missing = {name: new for name in known if (new := columns.get(name, set()) - known[name])}
            if missing and self.is_active and is_wanted():
                wanted = {stream: names | columns.get(stream, set()) for stream, names in known.items()}
                with self._restarted(f"reading more columns: {missing}", wanted):
                    pass

    @contextmanager
    def _restarted(self, why: str, columns: ReadColumns) -> Iterator[None]:
        """The streaming query ends between two batches, and starts anew with these columns after the block.

        Unless the batch under way was its last: then it stays what it is, ended or failed.
        """
        with self._gate.closed():
            run = self._running()
            is_to_start = not run.is_over()
            if is_to_start:
                _log.info("%s, so the streaming query starts anew", why)
                run.stop()
            try:
                yield
            finally:
                if is_to_start:
                    self._start(columns)

    def await_termination(self, timeout: float | None) -> bool:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            run = self._running()
            try:
                if not run.await_end(None if deadline is None else max(deadline - time.monotonic(), 0.0)):
                    return False
            except Exception:
                if self._is_current(run):
                    raise
            if self._is_current(run):
                return True

    def has_ended(self) -> bool:
        """Whether no batch follows: it was stopped, or has drained its sources. Raises what stopped it."""
        return self.await_termination(0.0) if self.was_started else self._gate.is_shut

    def process_all_available(self) -> None:
        while True:
            run = self._running()
            try:
                run.process_all_available()
            except StreamingQueryException:
                run.await_settled()
                if self._is_current(run):
                    if run.failure is not None:
                        raise run.failure from None
                    raise
            if self._is_current(run):
                return

    def stop(self, timeout_s: float | None) -> None:
        """Between two batches, if the one under way ends in time; else it is interrupted and runs again some day."""
        self._failing.end()
        if not self._gate.shut(timeout_s):
            _log.info(
                "the batch under way is interrupted, %s s after the stop; it runs after the next start", timeout_s
            )
        with self._lock:
            if self._run is not None:
                self._run.stop()

    def _start(self, columns: ReadColumns) -> None:
        mend_spark_dir(self._chain)
        with _plain_file_manager(self._spark), named_sources(self._spark, is_on=self._is_named):
            frames = self._frames = self._opened()
            needed = self._needed_columns()
            types = {
                name: column_types(frame.schema, {*columns.get(name, ()), *needed.get(name, ()), *PLACE_COLUMNS})
                for name, frame in frames.items()
            }
            self._read = pack_columns(types)
            self._worker_plan = None
            self._restore_offsets(frames)
            made = StreamingRun(self._gate)
            rows = union_streams(frames, self._read)
            if self._is_named:
                rows = rows.unionAll(self.control.open(self._spark, rows))
            writer = rows.writeStream.foreachBatch(partial(self._run_batch, made))
            writer = writer.option("checkpointLocation", str(spark_dir(self._chain.root)))
            start = _with_trigger(writer, self._trigger).queryName("dovetail").start
            made.begin(start, partial(self._recover, made))
            self._run = made
        self._failing.watch()

    def _opened(self) -> dict[str, DataFrame]:
        """Sorted by name: sources without a name are known to Spark's checkpoint by their position."""
        frames: dict[str, DataFrame] = {}
        refused: StreamError | None = None
        for name, source in sorted(self._sources.items()):
            if isinstance(source, DataFrame):
                frames[name] = source
            elif name not in self._failing.failures:
                try:
                    frames[name] = open_stream(self._spark, source, is_named=self._is_named, has_source=True)
                except StreamError as error:
                    if not self._may_leave_out:
                        raise
                    refused = error
                    self._failing.note(source, error)
        if not frames:
            raise refused or StreamError("no stream can be read", hint="see that the sources are there")
        return frames

    def _restore_offsets(self, frames: Mapping[str, DataFrame]) -> None:
        newest = self._chain.newest
        arrival = Arrival() if newest is None else newest.arrival
        self._left_out_offsets = {name: at for name, at in arrival.offsets.items() if name not in frames}
        if self._is_named:
            committed_batch = -1 if newest is None else newest.batch
            restore_offsets(self._chain.root, committed_batch, arrival.offsets, {*frames, CONTROL})

    @property
    def _may_leave_out(self) -> bool:
        """Whether a stream may be missing for a while: Spark knows sources by name, and goes on when it is back."""
        return self._trigger != AVAILABLE_NOW and self._is_named

    @property
    def _is_named(self) -> bool:
        return all(isinstance(source, StreamSpec) for source in self._sources.values())

    @property
    def failing_sources(self) -> Mapping[str, SourceFailure]:
        """By stream, those that are left out now."""
        return self._failing.failures

    def _recover(self, run: StreamingRun) -> None:
        """The streaming query failed. If sources are at fault, go on without them, or wait until one is back."""
        if self._gate.is_shut or not self._may_leave_out or run.is_own_failure:
            return
        pause_s = FIRST_RETRY_S
        if not self._failing.find(each for each in self._sources.values() if isinstance(each, StreamSpec)):
            # All answer now. If no batch was under way, one may have failed for a moment: that ends nobody's session.
            if run.failure is not None or self._restarts >= MOST_RESTARTS or not self._failing.wait(pause_s):
                return
            self._restarts += 1
            _log.warning("the streaming query failed, and every source answers: it starts anew")
        while not self._gate.is_shut:
            try:
                with self._lock:
                    if self._run is run and not self._gate.is_shut:
                        self._start({})
                return
            except StreamError:
                if not self._failing.wait(pause_s):
                    return
                pause_s = min(pause_s * 2, SLOWEST_RETRY_S)
                self._failing.retry()

    def _bring_back(self, streams: set[str]) -> None:
        """Their sources answer again: read them, too. What fails on the way is found by the next failure."""
        why = f"stream {', '.join(sorted(streams))} is back"
        with self._lock:
            try:
                if self.is_active:
                    with self._restarted(why, self._read.columns_by_stream):
                        pass
            except Exception as error:  # noqa: BLE001 - the others must go on, whatever it is
                if self._gate.is_shut:
                    return
                for name in streams:
                    source = self._sources[name]
                    assert isinstance(source, StreamSpec)
                    self._failing.note(source, StreamError(str(error)))
                self._start({})

    def _is_current(self, run: StreamingRun) -> bool:
        with self._lock:
            return self._run is run

    def _running(self) -> StreamingRun:
        if self._run is None:
            raise SessionError("the session is not started", hint="call start() first")
        return self._run

    def _run_batch(self, streaming: StreamingRun, batch_df: DataFrame, batch: int) -> None:
        def run(task: BatchTask) -> list[Message]:
            shared = self._shared_with_workers(task)

            def run_rows(rows: DataFrame) -> list[Message]:
                wanted = rows if shared.columns is None else rows.select(*shared.columns)
                return run_spark(task, wanted, shared.packing, shared.broadcast)

            specs = {name: source for name, source in self._sources.items() if isinstance(source, StreamSpec)}
            try:
                return BatchOfFiles(self._chain.root, batch, batch_df, self._read, specs).run(task, run_rows)
            except Exception as error:
                if streaming.is_over():
                    raise
                raise task_failure(error) from error

        try:
            with streaming.batch():
                # The batch runs in a clone of the user's Spark session, so these settings are ours alone.
                for key, value in crossing_settings(self._read.value_types).items():
                    batch_df.sparkSession.conf.set(key, value)
                batch_df.sparkSession.conf.set("spark.sql.adaptive.enabled", "false")
                self._run_engine_batch(batch, run, self._arrived(batch))
                self._restarts = 0
        except Exception as error:
            if streaming.is_over():
                raise BatchStopped from None
            streaming.failure = own_error(error)
            streaming.is_own_failure = isinstance(error, DovetailError)
            raise

    def _arrived(self, batch: int) -> Arrived:
        root = self._chain.root
        # A stream that is left out stays where it was.
        offsets = {**self._left_out_offsets, **read_offsets(root, batch, list(self._frames))}
        return Arrived(offsets, read_source_log(root, batch, self._chain.source_log_before(batch)))

    def _shared_with_workers(self, task: BatchTask) -> _WorkerPlan:
        """What only changes with the plan, made and sent once for it."""
        known, read = self._worker_plan, self._read
        if known is not None and known.serves(task, read):
            return known
        if known is not None:
            known.broadcast.unpersist()
        needed = wanted_columns(task.plan, task.streams)
        wanted = {
            name: column_types(frame.schema, {*needed[name], *PLACE_COLUMNS}) for name, frame in self._frames.items()
        }
        packing = pack_columns(wanted)
        columns = None if packing == read else repacked_columns(read, packing)
        broadcast = self._spark.sparkContext.broadcast((task.plan, task.streams))
        made = self._worker_plan = _WorkerPlan(task.plan, task.streams, read, broadcast, packing, columns)
        return made


def crossing_settings(types: Iterable[DataType]) -> dict[str, str]:
    """How rows cross to Python: in large batches, but where their width is not known only so many at once.

    Without a limit in bytes, because Spark finds out the bytes so far after every row, which takes as long as
    writing the row.
    """
    is_fixed = not any(isinstance(kind, StringType | BinaryType) for kind in types)
    return {
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(1 << 17 if is_fixed else 1 << 13),
        "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    }


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


def _with_trigger(writer: DataStreamWriter, trigger: str | None) -> DataStreamWriter:
    if trigger is None:
        return writer
    if trigger == AVAILABLE_NOW:
        return writer.trigger(availableNow=True)
    return writer.trigger(processingTime=trigger)
