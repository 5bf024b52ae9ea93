"""The streaming query reads the columns that queries need; one that needs more has it start anew, unnoticed."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

from dovetail import Session
from dovetail.core.errors import DovetailError
from dovetail.engine.options import EngineTuning
from dovetail.store.manifest import read_manifests
from tests.support.spark_runs import await_that

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMA = "k bigint, v bigint, unread string, ts timestamp"
PATIENCE_S = 300
FILES = 16


class Streams:
    """Two folders that get a file each at a time; row i of a file has key i."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._files = 0
        for name in "ab":
            (folder / name).mkdir(parents=True)

    def register(self, session: Session) -> None:
        for name in "ab":
            frame = self._spark.readStream.schema(SCHEMA).parquet(str(self._folder / name))
            session.create_stream(name, frame, event_time="ts", lateness="1 hour")

    def add_file(self) -> None:
        for name in "ab":
            table = pa.table(
                {
                    "k": pa.array([0, 1], pa.int64()),
                    "v": pa.array([10 * self._files, 10 * self._files + 1], pa.int64()),
                    "unread": ["text", None],
                    "ts": pa.array([1_000_000 * self._files] * 2).cast(pa.timestamp("us", tz="UTC")),
                }
            )
            hidden = self._folder / f".{name}"
            pq.write_table(table, hidden)
            hidden.rename(self._folder / name / f"{self._files}.parquet")
        self._files += 1


@pytest.fixture
def streams(spark: SparkSession, tmp_path: Path) -> Streams:
    return Streams(spark, tmp_path / "streams")


@pytest.fixture
def session(spark: SparkSession, tmp_path: Path, streams: Streams) -> Session:
    session = Session(
        spark, tmp_path / "checkpoint", partitions=2, key_groups=8, tuning=EngineTuning(small_batch_rows=0)
    )
    streams.register(session)
    return session


SAME_TIME = "b.ts BETWEEN a.ts AND a.ts"


def test_a_query_of_new_columns_joins_in_and_the_others_miss_nothing(
    spark: SparkSession, session: Session, streams: Streams
) -> None:
    keys = session.create_query(f"SELECT a.k FROM a JOIN b ON a.k = b.k AND {SAME_TIME}", name="keys")
    streams.add_file()
    session.start()
    session.process_all_available()
    first_run = spark.streams.active[0].runId
    ends = []
    waiting = threading.Thread(target=lambda: ends.append(session.await_termination(PATIENCE_S)))
    waiting.start()

    more_keys = session.create_query(f"SELECT b.k FROM a JOIN b ON a.k = b.k AND {SAME_TIME}", name="more_keys")
    assert spark.streams.active[0].runId == first_run, "it reads k already"

    values = session.create_query(f"SELECT a.v, b.v FROM a JOIN b ON a.k = b.k AND {SAME_TIME}", name="values")
    assert spark.streams.active[0].runId != first_run
    streams.add_file()
    session.process_all_available()
    assert waiting.is_alive(), "the session has not ended, only its streaming query has"

    assert sorted(row.k for row in keys.results().collect()) == [0, 0, 1, 1]
    assert sorted(row.k for row in more_keys.results().collect()) == [0, 1]
    assert sorted(tuple(row) for row in values.results().collect()) == [(10, 10), (11, 11)]
    session.stop()
    waiting.join(PATIENCE_S)
    assert ends == [True]


def test_only_wanted_columns_are_read(spark: SparkSession, session: Session, streams: Streams) -> None:
    streams.add_file()
    session.create_query(f"SELECT a.k FROM a JOIN b ON a.k = b.k AND {SAME_TIME}", name="keys")
    with session.start(trigger="available_now"):
        running = spark.streams.active[0]._jsq
        session.await_termination()
    plan = running.explainInternal(False)
    reads = [line for line in plan.splitlines() if "ReadSchema" in line]
    assert len(reads) == 2
    for read in reads:
        assert "k:bigint" in read
        assert "unread" not in read
        assert "v:bigint" not in read


@pytest.mark.parametrize(
    ("name", "sql", "options", "why"),
    [
        ("bad", "SELECT a.v, a.nothing FROM a JOIN b ON a.k = b.k", {}, "nothing"),
        ("keys", f"SELECT a.v FROM a JOIN b ON a.k = b.k AND {SAME_TIME}", {}, "exists already"),
        ("v", f"SELECT a.v FROM a JOIN b ON a.k = b.k AND {SAME_TIME}", {"max_rows": 1}, "max_rows"),
        ("v", "SELECT a.v FROM a JOIN b ON a.k = b.k", {}, "storage budget"),
        ("a name", f"SELECT a.v FROM a JOIN b ON a.k = b.k AND {SAME_TIME}", {}, "name"),
    ],
)
def test_a_refused_query_does_not_disturb_the_running_ones(
    spark: SparkSession,
    tmp_path: Path,
    streams: Streams,
    name: str,
    sql: str,
    options: dict[str, Any],
    why: str,
) -> None:
    session = Session(spark, tmp_path / "checkpoint", partitions=2, key_groups=8, storage_budget=10**9)
    streams.register(session)
    keys = session.create_query(f"SELECT a.k FROM a JOIN b ON a.k = b.k AND {SAME_TIME}", name="keys")
    streams.add_file()
    with session.start():
        session.process_all_available()
        run = spark.streams.active[0].runId
        with pytest.raises(DovetailError, match=why):
            session.create_query(sql, name=name, **options)
        assert spark.streams.active[0].runId == run
        assert sorted(row.k for row in keys.results().collect()) == [0, 1]


def test_a_retry_that_finds_its_dropped_query_reads_no_more_columns(
    spark: SparkSession, session: Session, streams: Streams
) -> None:
    keys = session.create_query(f"SELECT a.k FROM a JOIN b ON a.k = b.k AND {SAME_TIME}", name="keys")
    values = f"SELECT a.v FROM a JOIN b ON a.k = b.k AND {SAME_TIME}"
    dropped = session.create_query(values, name="values", request="r1")
    dropped.drop()
    streams.add_file()
    with session.start():
        session.process_all_available()
        run = spark.streams.active[0].runId
        assert session.create_query(values, name="values", request="r1").id == dropped.id
        assert spark.streams.active[0].runId == run
        assert sorted(row.k for row in keys.results().collect()) == [0, 1]


def _arrivals(root: Path) -> dict[int, tuple[int, int]]:
    """By second, the batches in which the two streams' files of it came.

    Spark may be stopped when it has taken a file of one stream for the next batch, and none of the other: it
    then takes one more.
    """
    newest_before = [(m.batch, m.arrival.newest_us) for m in read_manifests(root) if m.arrival is not None]

    def batch_of(second: int, stream: str) -> int:
        return max(batch for batch, newest in newest_before if newest.get(stream, -1) < 1_000_000 * second)

    return {second: (batch_of(second, "a"), batch_of(second, "b")) for second in range(FILES)}


def test_it_may_start_anew_in_the_middle_of_batches(spark: SparkSession, tmp_path: Path) -> None:
    names = [f"v{i}" for i in range(4)]
    for name in "ab":
        (tmp_path / name).mkdir()
        for second in range(FILES):
            values = {column: pa.array([100 * second + i for i in range(3)], pa.int64()) for column in names}
            ts = pa.array([1_000_000 * second] * 3).cast(pa.timestamp("us", tz="UTC"))
            path = tmp_path / name / f"{second:03d}.parquet"
            pq.write_table(pa.table({"k": pa.array(range(3), pa.int64()), **values, "ts": ts}), path)
            # Spark takes files by their age in milliseconds: within one, in any order.
            os.utime(path, (1_000_000 + second, 1_000_000 + second))
    session = Session(
        spark, tmp_path / "checkpoint", partitions=2, key_groups=8, tuning=EngineTuning(small_batch_rows=0)
    )
    schema = "k bigint, " + ", ".join(f"{name} bigint" for name in names) + ", ts timestamp"
    for name in "ab":
        files = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / name))
        session.create_stream(name, files, event_time="ts", lateness="1 hour")
    first = session.create_query(f"SELECT a.k FROM a JOIN b ON a.k = b.k AND {SAME_TIME}", name="first")
    session.start()
    ends: list[object] = []

    def wait() -> None:
        try:
            ends.append(session.await_termination(PATIENCE_S))
        except (StreamingQueryException, DovetailError) as error:
            ends.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    chance = Random(1)
    for name in names:
        goal = session.engine.head.batch + chance.randint(0, 2)
        await_that(lambda goal=goal: session.engine.head.batch >= goal)
        session.create_query(f"SELECT a.{name} FROM a JOIN b ON a.k = b.k AND {SAME_TIME}", name=name)
    session.process_all_available()
    assert waiting.is_alive(), ends
    assert first.results().count() == 3 * FILES
    arrivals = _arrivals(tmp_path / "checkpoint")
    for name in names:
        query = session.query(name)
        created = query.status.created_batch
        assert created is not None
        seen = sorted(row[name] for row in query.results().collect())
        seconds = [second for second in range(FILES) if min(arrivals[second]) >= created]
        assert seen == sorted(100 * second + i for second in seconds for i in range(3)), name
    session.stop()
    waiting.join(PATIENCE_S)
    assert ends == [True]
