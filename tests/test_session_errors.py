"""What a user gets when something is wrong: an error of ours that says what, where and what to do instead."""

from __future__ import annotations

import datetime
import json
import os
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dovetail import Session
from dovetail.core.errors import (
    BucketCorrupt,
    BucketMissing,
    CheckpointLocked,
    CheckpointVersionMismatch,
    CrossProduct,
    DovetailError,
    QueryError,
    SessionError,
    SqlSyntaxError,
    StreamError,
    TypeMismatch,
    UnknownName,
    UnsupportedSql,
)
from dovetail.store.layout import LAYOUT_VERSION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

PATIENCE_S = 60
DDL = "k INT, v INT, name STRING, ts TIMESTAMP"
ARROW = pa.schema([("k", pa.int32()), ("v", pa.int32()), ("name", pa.string()), ("ts", pa.timestamp("us", tz="UTC"))])
NOON = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC)
JOIN = "SELECT a.k, a.v AS av, b.v AS bv FROM a JOIN b ON a.k = b.k"


class Bench:
    """Streams `a` and `b` read from folders of Parquet files, one file a batch, and sessions over them."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.checkpoint = folder / "checkpoint"
        self._opened: list[Session] = []
        for name in ("a", "b"):
            (folder / name).mkdir()

    def add_batch(self, number: int) -> None:
        """Three rows a stream: two keys that return in every batch and one that does not."""
        for name in ("a", "b"):
            rows = [(1, number), (2, 10 + number), (100 + number, 0)]
            table = pa.Table.from_pylist(
                [{"k": k, "v": v, "name": str(k), "ts": NOON + datetime.timedelta(seconds=number)} for k, v in rows],
                schema=ARROW,
            )
            path = self.folder / name / f"{number}.parquet"
            pq.write_table(table, path.with_suffix(".hidden"))
            os.utime(path.with_suffix(".hidden"), (1_700_000_000 + number,) * 2)
            path.with_suffix(".hidden").rename(path)

    def frame(self, name: str) -> DataFrame:
        return self.spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).parquet(str(self.folder / name))

    def session(self, checkpoint: Path | None = None, **options: Any) -> Session:
        """A session that has no streams yet."""
        session = Session(self.spark, str(checkpoint or self.checkpoint), partitions=2, key_groups=8, **options)
        self._opened.append(session)
        return session

    def open(self, checkpoint: Path | None = None, **options: Any) -> Session:
        session = self.session(checkpoint, **options)
        for name in ("a", "b"):
            session.create_stream(name, self.frame(name), event_time="ts")
        return session

    def drain(self, session: Session) -> None:
        session.start(trigger="available_now")
        assert session.await_termination(timeout=PATIENCE_S)

    def batch_answer(self) -> Counter[tuple[Any, ...]]:
        for name in ("a", "b"):
            self.spark.read.schema(DDL).parquet(str(self.folder / name)).createOrReplaceTempView(name)
        return Counter(map(tuple, self.spark.sql(JOIN).collect()))

    def bucket(self) -> Path:
        return min((self.checkpoint / "buckets").rglob("*.arrow*"))

    def close(self) -> None:
        for session in self._opened:
            session.stop()


@pytest.fixture
def bench(spark: SparkSession, tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(spark, tmp_path)
    yield bench
    bench.close()


@pytest.fixture(scope="module")
def idle(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """One session for all tests that must leave it as it is."""
    bench = Bench(spark, tmp_path_factory.mktemp("idle"))
    yield bench.open()
    bench.close()


def answer_of(session: Session, name: str = "q") -> Counter[tuple[Any, ...]]:
    return Counter(map(tuple, session.query(name).results().collect()))


# SQL


@pytest.mark.parametrize(
    ("sql", "kind", "what"),
    [
        ("SELECT a.k FROM a JOIN z ON a.k = z.k", UnknownName, "z"),
        ("SELECT a.nope FROM a JOIN b ON a.k = b.k", UnknownName, "nope"),
        ("SELECT c.k FROM a JOIN b ON a.k = b.k", UnknownName, "c"),
        ("SELECT a.k FROM a JOIN b ON a.k = b.k WHERE nosuchfunction(a.k) = 1", UnknownName, "nosuchfunction"),
        ("SELECT a.k FROM a JOIN b ON a.k = b.k WHERE a.v > a.ts", TypeMismatch, "timestamp"),
        ("SELECT a.k FROM a JOIN b ON a.k = b.ts", TypeMismatch, "timestamp"),
        ("SELECT a.k FROM a CROSS JOIN b", CrossProduct, "no condition connects"),
        ("SELECT a.k FROM a JOIN b ON a.k < 5", CrossProduct, "no condition connects"),
        ("SELECT a.k FROM a, b", CrossProduct, "no condition connects"),
        ("SELECT a.k FROM a LEFT JOIN b ON a.k = b.k", UnsupportedSql, "how much later"),
        ("SELECT a.k, count(*) FROM a JOIN b ON a.k = b.k GROUP BY ROLLUP (a.k)", UnsupportedSql, "ROLLUP"),
        ("SELECT a.k FROM a JOIN b ON a.k = b.k ORDER BY a.k", UnsupportedSql, "ORDER BY"),
        ("SELECT a.k FROM a JOIN b ON a.k = b.k LIMIT 1", UnsupportedSql, "LIMIT"),
        ("SELECT FROM WHERE", SqlSyntaxError, ""),
        ("", SqlSyntaxError, ""),
    ],
)
def test_sql_that_cannot_run_is_refused_and_leaves_no_query(
    idle: Session, sql: str, kind: type[DovetailError], what: str
) -> None:
    with pytest.raises(kind) as caught:
        idle.create_query(sql, name="q")
    assert what in str(caught.value)
    assert caught.value.where or caught.value.hint
    assert idle.queries == []


# Streams


def test_a_batch_dataframe_is_no_stream(bench: Bench) -> None:
    with pytest.raises(StreamError, match="'a' is a batch DataFrame") as caught:
        bench.session().create_stream("a", bench.spark.range(3))
    assert caught.value.hint
    assert "readStream" in caught.value.hint


@pytest.mark.parametrize("ddl", ["x ARRAY<INT>", "x STRUCT<y: INT>", "x MAP<STRING, INT>", "x BINARY"])
def test_a_column_of_a_type_that_no_query_can_use_is_refused_by_name(bench: Bench, ddl: str) -> None:
    frame = bench.spark.readStream.schema(f"k INT, {ddl}").parquet(str(bench.folder / "a"))
    with pytest.raises(StreamError, match="column 'x' is ") as caught:
        bench.session().create_stream("a", frame)
    assert caught.value.hint
    assert "df.drop('x')" in caught.value.hint


@pytest.mark.parametrize("lateness", ["soon", "-1 second", "", "2 parsecs"])
def test_bad_lateness_is_refused(bench: Bench, lateness: str) -> None:
    with pytest.raises(StreamError, match="lateness"):
        bench.session().create_stream("a", bench.frame("a"), event_time="ts", lateness=lateness)


def test_an_event_time_that_is_not_there_or_no_time_is_refused(bench: Bench) -> None:
    session = bench.session()
    with pytest.raises(StreamError, match="no column 'time'"):
        session.create_stream("a", bench.frame("a"), event_time="time")
    with pytest.raises(StreamError, match="'k' is int, not a timestamp"):
        session.create_stream("a", bench.frame("a"), event_time="k")
    session.create_stream("a", bench.frame("a"), event_time="ts")
    with pytest.raises(StreamError, match="'a' exists already"):
        session.create_stream("a", bench.frame("a"))


# Options and order


@pytest.mark.parametrize("path", ["s3://bucket/x", "hdfs://host/x", "abfss://c@h/x"])
def test_a_remote_checkpoint_is_refused(spark: SparkSession, path: str) -> None:
    with pytest.raises(SessionError, match="is not a path of a mounted filesystem") as caught:
        Session(spark, path)
    assert caught.value.hint


def test_an_unknown_option_is_refused_and_leaves_no_checkpoint(bench: Bench) -> None:
    with pytest.raises(SessionError, match="unknown option: speed"):
        bench.session(speed=11)
    assert not bench.checkpoint.exists()


def test_a_folder_of_something_else_is_refused(bench: Bench) -> None:
    bench.checkpoint.mkdir()
    (bench.checkpoint / "thesis.txt").write_text("years of work")
    with pytest.raises(SessionError, match="is no Dovetail checkpoint"):
        bench.session()


def test_a_bad_trigger_is_refused_and_a_good_one_then_works(bench: Bench) -> None:
    session = bench.open()
    for trigger in ("sometimes", "5", "0 lightyears"):
        with pytest.raises(SessionError, match=f"trigger '{trigger}'") as caught:
            session.start(trigger=trigger)
        assert caught.value.hint
        assert "available_now" in caught.value.hint
    bench.drain(session)


def test_a_session_used_in_the_wrong_order_says_so(bench: Bench) -> None:
    session = bench.session()
    with pytest.raises(SessionError, match="no stream is registered"):
        session.start()
    for call in (session.await_termination, session.process_all_available):
        with pytest.raises(SessionError, match="not started"):
            call()
    with pytest.raises(QueryError, match="no query 'q'"):
        session.query("q")
    session.create_stream("a", bench.frame("a"), event_time="ts")
    session.start()
    with pytest.raises(SessionError, match="running already"):
        session.start()
    with pytest.raises(SessionError, match="'b' comes too late"):
        session.create_stream("b", bench.frame("b"), event_time="ts")
    session.stop()
    session.stop()
    with pytest.raises(SessionError, match="was stopped") as caught:
        session.start()
    assert caught.value.hint
    assert "new Session" in caught.value.hint


# Checkpoints


def test_a_second_session_on_the_checkpoint_is_refused_until_the_first_stops(bench: Bench) -> None:
    first = bench.session()
    with pytest.raises(CheckpointLocked, match=f"in use by process {os.getpid()}"):
        bench.session()
    first.stop()
    bench.session()


def test_a_checkpoint_of_another_version_is_refused_with_what_to_do(bench: Bench) -> None:
    bench.session().stop()
    (bench.checkpoint / "dovetail.json").write_text(json.dumps({"layout": 99}))
    with pytest.raises(CheckpointVersionMismatch, match="layout 99") as caught:
        bench.session()
    assert caught.value.hint
    (bench.checkpoint / "dovetail.json").write_text(json.dumps({"layout": LAYOUT_VERSION}))
    bench.session()


def test_a_checkpoint_wants_the_streams_it_was_made_with(bench: Bench) -> None:
    bench.add_batch(0)
    session = bench.open()
    session.create_query(JOIN, name="q")
    bench.drain(session)
    session.stop()
    again = bench.session()
    with pytest.raises(StreamError, match="'a' differs from the one this checkpoint was made with"):
        again.create_stream("a", bench.frame("a").drop("name"), event_time="ts")
    again.create_stream("a", bench.frame("a"), event_time="ts")
    with pytest.raises(SessionError, match="missing: b"):
        again.start()


def test_a_missing_or_corrupt_bucket_is_named_and_putting_it_back_loses_nothing(bench: Bench) -> None:
    bench.add_batch(0)
    session = bench.open()
    session.create_query(JOIN, name="q")
    bench.drain(session)
    session.stop()
    bucket, content = bench.bucket(), bench.bucket().read_bytes()
    bucket.unlink()
    with pytest.raises(BucketMissing, match=bucket.name) as missing:
        bench.open()
    assert missing.value.hint
    bucket.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
    with pytest.raises(BucketCorrupt, match=bucket.name):
        bench.open()
    bucket.write_bytes(content)
    bench.add_batch(1)
    again = bench.open()
    bench.drain(again)
    assert answer_of(again) == bench.batch_answer()


def test_a_bucket_that_vanishes_while_it_runs_is_the_error_that_the_user_gets(bench: Bench) -> None:
    bench.add_batch(0)
    session = bench.open()
    session.create_query(JOIN, name="q")
    bench.drain(session)
    session.stop()
    bench.add_batch(1)
    # A copy, because workers still have the files of the first one mapped.
    copy = bench.folder / "copy"
    shutil.copytree(bench.checkpoint, copy)
    running = bench.open(copy)
    bucket = copy / bench.bucket().relative_to(bench.checkpoint)
    content = bucket.read_bytes()
    bucket.unlink()
    running.start(trigger="available_now")
    with pytest.raises(BucketMissing, match=bucket.name) as caught:
        running.await_termination(timeout=PATIENCE_S)
    assert caught.value.hint
    running.stop()
    bucket.write_bytes(content)
    again = bench.open(copy)
    bench.drain(again)
    assert answer_of(again) == bench.batch_answer()


# Stopping


LATER_STEPS = [pytest.param(step, marks=pytest.mark.slow) for step in ("before_run", "after_manifest")]


@pytest.mark.parametrize("step", ["before_manifest", *LATER_STEPS])
def test_a_stop_in_the_middle_of_a_batch_loses_and_doubles_nothing(bench: Bench, step: str) -> None:
    for number in range(2):
        bench.add_batch(number)
    session = bench.open()
    session.create_query(JOIN, name="q")
    reached, go_on = threading.Event(), threading.Event()
    on_step = _wait_at(step, batch=1, session=session, reached=reached, go_on=go_on)
    batches = session._engine.batches
    batches._parts = replace(batches._parts, on_step=on_step)
    session.start()
    assert reached.wait(PATIENCE_S)
    stopping = threading.Thread(target=session.stop)
    stopping.start()
    stopping.join(0.5)
    # Whoever gets the checkpoint now must not meet a batch that is still being committed.
    assert stopping.is_alive()
    with pytest.raises(CheckpointLocked):
        bench.open()
    go_on.set()
    stopping.join(PATIENCE_S)
    assert not stopping.is_alive()

    again = bench.open()
    # The first batch has three pairs, and the second seven more: a stop waits for the batch under way.
    assert again.query("q").status.total_rows == 3 + 7
    bench.drain(again)
    assert answer_of(again) == bench.batch_answer()


def _wait_at(
    step: str, *, batch: int, session: Session, reached: threading.Event, go_on: threading.Event
) -> Callable[[str], None]:
    def on_step(now: str) -> None:
        if now == step and session._engine.head.batch == batch - 1:
            reached.set()
            go_on.wait(PATIENCE_S)

    return on_step
