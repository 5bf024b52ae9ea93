"""A session: one Spark application that runs many continuous queries as one pipeline."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Literal, Unpack, overload

from pyspark.sql import DataFrame, SparkSession

from dovetail.api.arguments import check_frame, check_spark, check_trigger, duration_s, interval_s, local_path
from dovetail.api.query import Query
from dovetail.core.errors import SessionError, UnknownQuery
from dovetail.core.html_table import html_table
from dovetail.core.shown_text import ShownText
from dovetail.core.stream_description import StreamDescription
from dovetail.engine.admission.query_estimate import QueryEstimate
from dovetail.engine.backfill.backfills import Backfills
from dovetail.engine.backfill.thread import BackfillThread
from dovetail.engine.control.execute_statement import StatementRunner
from dovetail.engine.control.query_options import query_options
from dovetail.engine.control.registry import QueryRecord, QueryState
from dovetail.engine.control.sink_spec import SinkSpec
from dovetail.engine.control.statement_result import StatementResult
from dovetail.engine.delivery.commit_news import CommitNews
from dovetail.engine.delivery.deliveries import Deliveries
from dovetail.engine.delivery.delivery import Delivery
from dovetail.engine.engine import Engine
from dovetail.engine.explain.explain import ExplainFormat, explain_plan
from dovetail.engine.options import EngineTuning, user_options
from dovetail.engine.options.session_options import SessionOptions
from dovetail.engine.planning.elastic_units import ElasticUnits
from dovetail.engine.progress.print_progress import print_progress
from dovetail.frontend.parse.statement import CreateStream
from dovetail.query.hide_secrets import check_no_secrets
from dovetail.query.row_rules import ONE_DAY, QUARANTINE, lateness_us, row_rules
from dovetail.query.stream import Stream
from dovetail.query.stream_spec import StreamSpec, stream_spec
from dovetail.runtime.result_batch import ResultBatch
from dovetail.runtime.spark.executors import Executors
from dovetail.runtime.spark.interrupts import keep_interrupts_from_batches
from dovetail.runtime.spark.pipeline import SparkPipeline
from dovetail.runtime.spark.sources.frame_folders import frame_folders
from dovetail.runtime.spark.sources.open_stream import check_source
from dovetail.runtime.spark.sources.source_history import SourceHistory
from dovetail.runtime.spark.stop_first import stop_before
from dovetail.runtime.spark.streaming_run import aside
from dovetail.runtime.spark.types import stream_columns
from dovetail.runtime.spark.warm_workers import await_warm, warm_workers
from dovetail.runtime.spark.worker_python import use_own_interpreter
from dovetail.runtime.spark.write_sink import write_sink
from dovetail.store.bad_rows import BadRow
from dovetail.store.vacuum import VacuumReport, vacuum

BATCH_PATIENCE_S, SINK_PATIENCE_S = 60.0, 10.0
"""How long a session that stops waits for the batch under way, and for its sinks."""
_log = logging.getLogger("dovetail")


class Session:
    """One Spark application that runs many continuous queries as one pipeline.

    All it knows is in `checkpoint_dir`: a new session on the same folder goes on where the last one ended. `trigger` is
    how often a batch begins, such as «1 second»; without it each begins when the one before has ended. The other
    options are on a page of their own (docs/options.md). As a context manager it stops at the end of the block.

        with Session(spark, "/data/checkpoint") as session:
            session.create_stream("orders", orders, event_time="ts", lateness="2 seconds")
            session.create_stream("payments", payments, event_time="ts")
            paid = session.create_query(
                "SELECT o.id, p.amount FROM orders o JOIN payments p ON o.id = p.order_id WITHIN 1 HOUR", name="paid"
            )
            session.start()
            for row in paid.tail():
                print(row)
    """

    def __init__(
        self,
        spark: SparkSession,
        checkpoint_dir: str | Path,
        *,
        trigger: str | None = None,
        tuning: EngineTuning | None = None,
        **options: Unpack[SessionOptions],
    ) -> None:
        """`tuning` is for tests and benchmarks."""
        check_spark(spark)
        root = local_path(checkpoint_dir)
        use_own_interpreter(spark)
        self._warming = warm_workers(spark)
        self._spark = spark
        self._trigger = check_trigger(trigger)
        self._is_stopped = False
        self._stopping: Future[None] | None = None
        self._forget_spark: Callable[[], None] = lambda: None
        # May be taken again by a signal handler that meets its own thread here.
        self._stopping_lock = threading.RLock()
        if options.get("partitions") is None:
            options["partitions"] = spark.sparkContext.defaultParallelism
        timezone = str(spark.conf.get("spark.sql.session.timeZone"))
        self._engine = Engine(root, user_options(options, timezone, tuning))
        self._deliveries = Deliveries(self._engine, partial(_write_sink, spark))
        self._pipeline = SparkPipeline(
            spark, self._engine.chain, self._engine.batches.run, self._engine.queries.read_columns
        )
        self._engine.streams.failing = lambda: self._pipeline.failing_sources
        for name, spec in self._engine.streams.declared().items():
            self._pipeline.add_stream(name, spec)
        self._declaring = threading.Lock()
        # A query that comes while the pipeline starts must be known before, or have it read its columns afterwards.
        self._starting = threading.Lock()
        self._engine.answers.listen(self._wake_for_changes)
        self._engine.on_change(self._pipeline.control.wake)
        streams = self._engine.streams.declared
        history = SourceHistory(spark, self._engine.root, streams, lambda: sorted(self._engine.streams.by_name))
        self._backfills = Backfills(self._engine, history)
        self._backfill_thread = BackfillThread(self._engine, self._backfills)
        if self._engine.plans.elastic is not None:
            self._follow_units(self._engine.plans.elastic)

    def _follow_units(self, elastic: ElasticUnits) -> None:
        """Have executors for as many units as there are, from one batch to the next."""
        executors = Executors(self._spark)
        elastic.run_at_once(executors.cores)
        elastic.count_executors = lambda: executors.running
        self._engine.answers.listen(lambda _news: executors.follow(elastic.units))

    def _wake_for_changes(self, _news: CommitNews) -> None:
        """Changes that came while the batch ran need another one."""
        self._pipeline.control.note_commit()
        if self._engine.has_pending_changes:
            self._pipeline.control.wake()

    def create_stream(
        self,
        name: str,
        df: DataFrame,
        event_time: str | None = None,
        lateness: str = "0 seconds",
        *,
        on_bad_row: str = QUARANTINE,
        max_event_time_ahead: str = ONE_DAY,
    ) -> None:
        """Register a streaming DataFrame under a name that queries use, before the session starts.

        `event_time` is the column of time conditions and windows. Rows more than `lateness` behind the newest are late:
        they are counted, and not joined. Rows further past the batch's own time than `max_event_time_ahead` («off»: as
        far as they like), and rows beyond year 9999, are bad: `on_bad_row` keeps them aside («quarantine», see
        `bad_rows`), leaves them out («drop») or ends the session («fail»).
        """
        if self._pipeline.was_started:
            raise SessionError(
                f"stream {name!r} comes too late: the session is running",
                hint="register all streams before start(); stop and start again to add one",
            )
        check_frame(name, df)
        rules = row_rules(name, on_bad_row, max_event_time_ahead)
        columns = stream_columns(name, df.schema)
        stream = Stream(name, columns, event_time, lateness_us(name, lateness), rules)
        self._engine.streams.create(stream, frame_folders(df))
        self._pipeline.add_stream(name, df)

    def declare_stream(self, spec: StreamSpec, *, request: str = "", may_change: bool = False) -> None:
        """Add a stream that Dovetail opens itself, before the start or while running; after a restart it is there.

            columns = (("id", BIGINT), ("ts", TIMESTAMP))  # from dovetail.query.types
            session.declare_stream(StreamSpec("orders", columns, "parquet", {"path": "/data/orders"}, "ts"))

        The same declaration again is no change; one with other rules for bad rows changes these. With `may_change`
        another one of a known name changes its lateness, its options, or adds columns. While running, this call waits
        until the batch under way has ended; all streams of the session must have been declared then.
        """
        with self._declaring:
            known = self._engine.streams.declared().get(spec.name)
            if may_change and known is not None and known != spec:
                self._engine.streams.check_change(spec)
                check_source(self._spark, spec)
                self._pipeline.declare_stream(spec, lambda: self._redeclare(spec))
            elif not self._engine.streams.is_declared(spec, request=request):
                check_no_secrets(f"stream {spec.name!r}", spec.options)
                check_source(self._spark, spec)
                self._pipeline.declare_stream(spec, lambda: self._engine.streams.declare(spec, request=request))

    def _redeclare(self, spec: StreamSpec) -> None:
        anew = self._engine.streams.redeclare(spec)
        if anew:
            _log.info("stream %s has changed, so these queries begin anew: %s", spec.name, ", ".join(anew))

    def bad_rows(self, stream: str) -> list[BadRow]:
        """The rows of a stream that are kept aside because it cannot use them, the oldest first: why, and from where.

        for row in session.bad_rows("orders"):
            print(row.batch, row.source, row.reason, row.values)
        """
        return self._engine.streams.bad_rows(stream)

    def retry_bad_rows(self, stream: str, *, request: str = "") -> int:
        """Have the bad rows of a stream come again with the next batch, as if they arrived in it; how many these are.

        They are judged anew, by the rules that the stream has then. `request` is an id of your own for this call.
        """
        return self._engine.streams.retry_bad_rows(stream, request=request)

    @property
    def streams(self) -> list[StreamDescription]:
        """All streams, registered and declared, by name."""
        return self._engine.streams.descriptions()

    def create_query(
        self, sql: str, name: str | None = None, *, replace: bool = False, request: str = "", **options: Any
    ) -> Query:
        """Accept a continuous query, before the start or while running; it takes effect with the next batch.

            session.create_query("SELECT ...", name="paid", sink="kafka", **{"sink.topic": "paid"})

        Without a name it gets one. Options are `max_results_per_batch` and `max_pairs_per_batch` (docs/limits.md),
        `sink` and `sink.*` (docs/sinks.md), `backfill` (docs/backfill.md), and `keep_intermediates`: with False the
        query probes base streams only, whatever the session keeps for others.
        With `replace` it takes the place of a query of the same name, at one batch edge; the sink and the options that
        are not given stay, a `backfill` does not. `request` is an id of your own for this call: a retry under the same
        id finds the query that the first call created.
        If the query needs columns that none read so far, this call waits until the batch under way has ended.
        """
        name = name or f"query_{uuid.uuid4().hex[:8]}"
        record = self._accept_query(sql, name, options, may_replace=replace, request=request)
        return self._handle(record.id)

    def execute(self, statement: str, *, request: str = "") -> StatementResult:
        """Run one statement: CREATE, DROP or ALTER CONTINUOUS QUERY, CREATE STREAM, SHOW, EXPLAIN (docs/sql.md).

            session.execute("SHOW QUERIES").rows

        `request` is an id of your own for this call: a retry under the same id changes nothing more.
        """
        return StatementRunner(self._engine, self._accept_query, self._accept_stream).execute(statement, request)

    def _accept_query(
        self, sql: str, name: str, options: Mapping[str, Any], *, may_replace: bool, request: str
    ) -> QueryRecord:
        queries = self._engine.queries
        with self._starting:
            if not self._pipeline.is_active:
                return queries.create(sql, name, options, may_replace=may_replace, request=request)
        self._pipeline.read_more(
            queries.compile(sql).read_columns(),
            lambda: queries.would_create(sql, name, options, may_replace=may_replace, request=request),
        )
        return queries.create(sql, name, options, may_replace=may_replace, request=request)

    def _accept_stream(self, statement: CreateStream, request: str) -> None:
        self.declare_stream(stream_spec(statement.name, statement.columns, statement.options), request=request)

    def estimate(self, sql: str, **options: Any) -> QueryEstimate:
        """What a query of this text would store, find and cost next to those that run; it is not created."""
        return self._engine.queries.estimate(sql, query_options(options))

    def query(self, name: str) -> Query:
        """The handle of the query that has this name now, or had it last (after a restart, for example)."""
        records = self._engine.queries.records()
        found = self._engine.queries.named(name) or next((r for r in reversed(records) if r.name == name), None)
        if found is not None:
            return self._handle(found.id)
        known = ", ".join(sorted({record.name for record in records})) or "none"
        raise UnknownQuery(f"no query {name!r}", hint=f"queries are: {known}")

    @property
    def queries(self) -> list[Query]:
        """All queries that are not dropped."""
        records = self._engine.queries.records()
        return [self._handle(record.id) for record in records if record.state is not QueryState.DROPPED]

    def _handle(self, query_id: str) -> Query:
        return Query(self._spark, self._engine, self._deliveries, self._pipeline, query_id)

    def start(self, trigger: str | None = None) -> Session:
        """Begin to run batches, and return at once.

        `trigger` takes the place of the session's: «1 second» begins a batch at that interval, «available_now»
        processes what the sources have now and then ends.
        """
        if self._is_stopped:
            raise SessionError(
                "the session was stopped", hint="make a new Session on the same checkpoint_dir: it goes on from there"
            )
        if self._pipeline.is_active:
            raise SessionError("the session is running already", hint="call stop() first")
        self._engine.check_ready()
        keep_interrupts_from_batches()
        self._deliveries.start()
        trigger = check_trigger(trigger) or self._trigger
        if self._engine.plans.elastic is not None:
            self._engine.plans.elastic.interval_s = interval_s(trigger)
        if self._engine.has_pending_changes:
            self._pipeline.control.wake()
        with self._starting:
            self._pipeline.start(trigger, self._engine.queries.read_columns())
            self._forget_spark()
            self._forget_spark = stop_before(self._spark.sparkContext, self.stop)
        self._backfill_thread.start()
        return self

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the session ends; False when the time (in seconds) is up first. Raises what stopped it."""
        return self._pipeline.await_termination(timeout)

    def process_all_available(self) -> None:
        """Wait until everything that the sources have now is processed and committed."""
        self._pipeline.process_all_available()

    def stop(self, timeout: float | None = BATCH_PATIENCE_S) -> None:
        """End the session between two batches: the one under way commits, if it does within the timeout.

        Else it is interrupted, and runs again after the next start; never both. Sinks get some seconds for what is
        committed; what they do not have then, they get after the next start.
        It may be called from everywhere, signal handlers too, and again: each call waits for the one stop. Only a
        function of `foreach_batch`, which a stop waits for, goes on at once. `spark.stop()` calls it first.
        """
        with self._stopping_lock:
            if self._stopping is None or (self._stopping.done() and self._stopping.exception() is not None):
                self._stopping = aside(lambda: self._end(timeout), "dovetail-stop", is_awaited_at_exit=True)
        if not (self._pipeline.is_batch_of_this_thread or self._deliveries.is_one_of_this_thread):
            self._stopping.result()

    def _end(self, timeout: float | None) -> None:
        self._is_stopped = True
        self._forget_spark()
        await_warm(self._warming)
        self._pipeline.stop(timeout)
        # Whatever fails on the way, the checkpoint is free in the end: no batch runs any more.
        with ExitStack() as ending:
            ending.callback(self._engine.close)
            ending.callback(self._deliveries.stop, SINK_PATIENCE_S)
            ending.callback(self._backfills.close)
            self._backfill_thread.stop()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    @property
    def engine(self) -> Engine:
        """What runs the batches: for programs that serve a session, not for those that use one."""
        return self._engine

    def delivery_of(self, query_id: str) -> Delivery | None:
        """How far the sink of a query is; None without one."""
        return self._deliveries.of(query_id)

    @property
    def progress(self) -> dict[str, Any] | None:
        """Figures of the last committed batch, per stream, query, store and hop; None before the first one.

        Shaped as PySpark's progress: `batchId`, `numInputRows`, `durationMs` and so on.
        """
        progress, failing = self._engine.batches.progress, self._pipeline.failing_sources
        for stream in [] if progress is None else progress["streams"]:
            failure = failing.get(stream["name"])
            stream["failing"] = None if failure is None else failure.to_json()
        return progress

    @property
    def recent_progress(self) -> list[dict[str, Any]]:
        """As `progress`, of the last batches of this process, at most 32, the newest last.

        Which sources fail now is in `progress` only.
        """
        return [print_progress(figures) for figures in self._engine.head.recent.batches]

    @overload
    def explain(self, format: Literal["text"] = "text", *, trace: bool = False) -> str: ...
    @overload
    def explain(self, format: Literal["json"], *, trace: bool = False) -> dict[str, Any]: ...

    def explain(
        self,
        format: ExplainFormat = "text",  # noqa: A002 - as users call it
        *,
        trace: bool = False,
    ) -> str | dict[str, Any]:
        """The shared plan of all queries, expected and observed rows, costs, and its last change (docs/explain.md).

        A string, which a notebook shows as lines; «json» gives the same as a dictionary that `json.dumps` takes.
        With `trace` also how the plan was made: what each pass of planning changed, and how long it took.
        """
        found = explain_plan(self._engine, format, trace=trace)
        return ShownText(found) if isinstance(found, str) else found

    def __repr__(self) -> str:
        return f"Session({str(self._engine.root)!r}, batch {self._engine.head.batch}, {len(self.queries)} queries)"

    def _repr_html_(self) -> str:
        states = [query.status for query in self.queries]
        rows = [(status.name, status.state, status.total_rows, status.complete_from, status.error) for status in states]
        return html_table(repr(self), ("query", "state", "answers", "complete from batch", "error"), rows)

    def vacuum(self, *, dry_run: bool = True, retention: str = "1 hour") -> VacuumReport:
        """Remove files that retries and crashes left behind, if they are older than `retention`.

        A dry run only lists them.
        """
        return vacuum(self._engine.root, dry_run=dry_run, retention_s=duration_s("retention", retention))


def _write_sink(spark: SparkSession, sink: SinkSpec, batch: ResultBatch) -> None:
    write_sink(spark, sink.format, sink.options, batch)
