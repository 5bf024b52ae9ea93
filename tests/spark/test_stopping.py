"""`stop()` ends a session between two batches: from wherever it is called, in bounded time, and without a word."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.functions import udf

from dovetail import Query, Session
from dovetail.core.errors import DovetailError, QueryError, SessionError
from dovetail.runtime.spark.batch_gate import BatchStopped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

PATIENCE_S = 120.0
FOREVER_S = 1000.0
SQL = "SELECT a.v, b.v AS other FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 SECOND"


class Bench:
    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.checkpoint = folder / "checkpoint"
        self._sessions: list[Session] = []

    def rate(self) -> DataFrame:
        rows = self.spark.readStream.format("rate").option("rowsPerSecond", 500).load()
        return rows.selectExpr("value % 50 AS k", "value AS v", "value + 1 AS more", "timestamp AS ts")

    def hanging(self) -> DataFrame:
        @udf("bigint", useArrow=False)
        def hang(value: int) -> int:
            time.sleep(FOREVER_S)
            return value

        return self.rate().withColumn("v", hang("v"))

    def session(self, left: DataFrame | None = None) -> tuple[Session, Query]:
        session = Session(self.spark, str(self.checkpoint), partitions=2, key_groups=16)
        self._sessions.append(session)
        session.create_stream("a", self.rate() if left is None else left, event_time="ts")
        session.create_stream("b", self.rate(), event_time="ts")
        return session, session.create_query(SQL, name="q", replace=session.engine.head.batch >= 0)

    def close(self) -> None:
        for session in self._sessions:
            session.stop(timeout=0)


@pytest.fixture
def bench(spark: SparkSession, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(spark, tmp_path)
    yield made
    made.close()


def java_exception(session: Session) -> object:
    """What Spark prints when a streaming query ends by an error."""
    run = session._pipeline._run
    assert run is not None
    assert run._query is not None
    return run._query.exception()


def test_spark_takes_the_error_of_a_stopped_batch_for_a_stop(spark: SparkSession) -> None:
    """By its own code: with the trace of a job as text, the same call overflows the stack."""
    jvm: Any = spark._jvm
    execution = jvm.org.apache.spark.sql.execution.streaming.runtime.StreamExecution
    context = spark.sparkContext._jsc.sc()

    def is_stop(text: str) -> bool:
        return bool(execution.isInterruptionException(jvm.py4j.Py4JException(text), context))

    assert is_stop(f"Traceback ...\n{BatchStopped()}\n")
    assert not is_stop("Traceback ...\nValueError: mine\n")


def test_the_batch_under_way_commits(bench: Bench) -> None:
    session, query = bench.session()
    held, may_end = threading.Event(), threading.Event()

    def hold(_news: object) -> None:
        held.set()
        assert may_end.wait(PATIENCE_S)

    session.start()
    assert query.await_results(timeout=PATIENCE_S)
    session.engine.answers.listen(hold)
    assert held.wait(PATIENCE_S)
    threading.Timer(0.5, may_end.set).start()
    session.stop()
    assert may_end.is_set()
    assert java_exception(session) is None
    assert session.await_termination(timeout=0)
    assert query.to_arrow().num_rows == query.status.total_rows
    session.stop()


def test_a_batch_that_hangs_is_interrupted_and_runs_after_the_next_start(bench: Bench) -> None:
    session, query = bench.session(bench.hanging())
    session.start()
    assert not query.await_results(timeout=3)
    session.stop(timeout=0.5)
    assert java_exception(session) is None
    hung = session.engine.head.batch + 1
    again, query = bench.session()
    again.start()
    assert query.await_results(timeout=PATIENCE_S)
    assert again.engine.head.batch >= hung
    again.stop()


def test_a_function_that_gets_answers_may_stop_the_session(bench: Bench) -> None:
    session, query = bench.session()
    taken: list[int] = []

    def take(_table: object, batch: int) -> None:
        taken.append(batch)
        session.stop()

    delivery = query.foreach_batch(take)
    session.start()
    assert session.await_termination(timeout=PATIENCE_S)
    session.stop()
    assert delivery.delivered_batch == session.engine.head.batch
    assert taken


def test_a_listener_may_stop_the_session_from_within_the_batch(bench: Bench) -> None:
    session, _ = bench.session()
    session.engine.answers.listen(lambda _news: session.stop())
    session.start()
    assert session.await_termination(timeout=PATIENCE_S)
    session.stop()
    assert java_exception(session) is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_meets_a_waiting_program(bench: Bench, number: signal.Signals) -> None:
    session, query = bench.session()
    session.start()
    assert query.await_results(timeout=PATIENCE_S)
    before = signal.getsignal(number)
    if number is signal.SIGTERM:
        signal.signal(number, lambda *_: session.stop())
    threading.Timer(0.5, lambda: os.kill(os.getpid(), number)).start()
    try:
        if number is signal.SIGTERM:
            assert session.await_termination(timeout=PATIENCE_S)
        else:
            with pytest.raises(KeyboardInterrupt):
                session.await_termination(timeout=PATIENCE_S)
        session.stop()
    finally:
        signal.signal(number, before)
    assert java_exception(session) is None
    assert query.results().count() == query.status.total_rows


def raised_by(call: Callable[[], object], errors: list[DovetailError]) -> threading.Thread:
    def run() -> None:
        try:
            call()
        except DovetailError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_stop_meets_a_query_that_wants_more_columns(bench: Bench) -> None:
    session, query = bench.session()
    session.start()
    assert query.await_results(timeout=PATIENCE_S)
    errors: list[DovetailError] = []
    more = raised_by(lambda: session.create_query(SQL.replace("a.v", "a.more"), name="more"), errors)
    session.stop()
    more.join(PATIENCE_S)
    assert not more.is_alive()
    assert all(isinstance(error, SessionError) and "is stopping" in error.what for error in errors)
    assert session.await_termination(timeout=0)
    assert java_exception(session) is None


def test_who_waits_for_answers_hears_that_there_will_be_none(bench: Bench) -> None:
    session, query = bench.session()
    with pytest.raises(SessionError, match="not started"):
        query.await_results(timeout=1)
    failing = session.create_query("SELECT 1 / (a.v - a.v) AS x FROM a JOIN b ON a.k = b.k WITHIN 1 SECOND", name="bad")
    session.start()
    with pytest.raises(QueryError, match="'bad' is stopped"):
        failing.await_results(timeout=PATIENCE_S)
    assert not query.await_results(rows=10**9, timeout=0.2)
    query.drop()
    query.await_effect(PATIENCE_S)
    assert not query.await_results(rows=10**9)
    session.stop()
