"""Streams that are declared while the session runs: nothing of the others is lost, doubled or read again."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dovetail import Session
from dovetail.core.errors import SessionError, StreamError
from dovetail.engine.options import EngineTuning
from dovetail.query.stream_spec import StreamSpec
from dovetail.query.types import BIGINT, TIMESTAMP

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

COLUMNS = (("k", BIGINT), ("v", BIGINT), ("ts", TIMESTAMP))
PATIENCE_S = 120


class Folders:
    """Streams of Parquet files; every row has key 0 and a value of its own, so that every pair joins."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._next = 0

    def spec(self, name: str) -> StreamSpec:
        (self._folder / name).mkdir(parents=True, exist_ok=True)
        return StreamSpec(name, COLUMNS, "parquet", {"path": str(self._folder / name)}, "ts", "1 hour")

    def add(self, name: str) -> int:
        """One more row; its value."""
        self._next += 1
        times = pa.array([self._next * 1_000_000]).cast(pa.timestamp("us", tz="UTC"))
        pq.write_table(pa.table({"k": [0], "v": [self._next], "ts": times}), self._folder / f".{name}")
        (self._folder / f".{name}").rename(self._folder / name / f"{self._next:04d}.parquet")
        return self._next


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "streams")


def open_session(spark: SparkSession, tmp_path: Path) -> Session:
    return Session(spark, tmp_path / "checkpoint", partitions=2, key_groups=8, tuning=EngineTuning(small_batch_rows=0))


def pairs(left: str, right: str) -> str:
    return f"SELECT {left}.v AS l, {right}.v AS r FROM {left} JOIN {right} ON {left}.k = {right}.k WITHIN 1 HOUR"


def answers(session: Session, name: str) -> Counter[tuple[int, int]]:
    return Counter((row.l, row.r) for row in session.query(name).results().collect())


def test_a_stream_joins_in_and_comes_back_after_a_restart(
    spark: SparkSession, tmp_path: Path, folders: Folders
) -> None:
    session = open_session(spark, tmp_path)
    for name in "bc":
        session.declare_stream(folders.spec(name))
    session.create_query(pairs("b", "c"), name="bc")
    b, c = [folders.add("b")], [folders.add("c")]
    session.start()
    session.process_all_available()
    ends: list[object] = []
    waiting = threading.Thread(target=lambda: ends.append(session.await_termination(PATIENCE_S)))
    waiting.start()

    # First by name, so that sources known by their position would be mixed up.
    a = [folders.spec("a") and folders.add("a")]
    session.declare_stream(folders.spec("a"), request="r1")
    session.declare_stream(folders.spec("a"), request="r1")
    query = session.create_query(pairs("a", "b"), name="ab")
    b.append(folders.add("b"))
    session.process_all_available()
    assert waiting.is_alive(), ends
    assert answers(session, "bc") == Counter((left, right) for left in b for right in c)
    assert query.status.complete_from == 0, "of a nothing was missed, and b was kept for the other query"
    session.stop()
    waiting.join(PATIENCE_S)
    assert ends == [True]
    assert spark.conf.get("spark.sql.streaming.queryEvolution.enableSourceEvolution", None) is None

    again = open_session(spark, tmp_path)
    assert [stream.name for stream in again.streams] == ["a", "b", "c"]
    a.append(folders.add("a"))
    again.declare_stream(folders.spec("d"))
    again.create_query(pairs("d", "a"), name="da")
    d = [folders.add("d")]
    again.start(trigger="available_now")
    again.await_termination(PATIENCE_S)
    assert answers(again, "ab") == Counter((left, right) for left in a for right in b)
    assert answers(again, "bc") == Counter((left, right) for left in b for right in c)
    created = again.query("da").status
    assert created.complete_from == 0
    assert answers(again, "da") == Counter((left, right) for left in d for right in a)
    again.stop()


def test_a_stream_is_declared_while_a_batch_fails_and_runs_again(
    spark: SparkSession, tmp_path: Path, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark has logged the batch without the new source, which then must come with a later one."""
    session = open_session(spark, tmp_path)
    for name in "bc":
        session.declare_stream(folders.spec(name))
    session.create_query(pairs("b", "c"), name="bc")
    b, c = [folders.add("b")], [folders.add("c")]
    session.start()
    session.process_all_available()

    def crash(step: str) -> None:
        raise RuntimeError(step)

    with monkeypatch.context() as broken:
        batches = session._engine.batches
        broken.setattr(batches, "_parts", replace(batches._parts, on_step=crash))
        c.append(folders.add("c"))
        with pytest.raises(RuntimeError, match="before_run"):
            session.await_termination(PATIENCE_S)
    session.stop()

    again = open_session(spark, tmp_path)
    spec = folders.spec("a")
    a = [folders.add("a")]
    again.declare_stream(spec)
    again.create_query(pairs("a", "b"), name="ab")
    again.start(trigger="available_now")
    again.await_termination(PATIENCE_S)
    assert answers(again, "bc") == Counter((left, right) for left in b for right in c)
    assert answers(again, "ab") == Counter((left, right) for left in a for right in b)
    again.stop()


def test_a_source_that_does_not_work_is_refused_and_the_session_goes_on(
    spark: SparkSession, tmp_path: Path, folders: Folders
) -> None:
    with open_session(spark, tmp_path) as session:
        session.declare_stream(folders.spec("a"))
        session.start()
        run = spark.streams.active[0].runId
        with pytest.raises(StreamError, match="Spark cannot read it"):
            session.declare_stream(StreamSpec("b", COLUMNS, "parquet", {"path": str(tmp_path / "nowhere")}))
        folders.add("a")
        session.process_all_available()
        assert [active.runId for active in spark.streams.active] == [run]
        assert [stream.name for stream in session.streams] == ["a"]


def test_beside_a_dataframe_no_stream_can_be_declared_while_running(
    spark: SparkSession, tmp_path: Path, folders: Folders
) -> None:
    spec = folders.spec("b")
    with open_session(spark, tmp_path) as session:
        session.declare_stream(folders.spec("a"))
        frame = spark.readStream.schema("k bigint, v bigint, ts timestamp").parquet(spec.options["path"])
        session.create_stream("b", frame, event_time="ts", lateness="1 hour")
        session.create_query(pairs("a", "b"), name="ab")
        left, right = folders.add("a"), folders.add("b")
        session.start()
        session.process_all_available()
        assert answers(session, "ab") == Counter([(left, right)])
        with pytest.raises(SessionError, match="reads b from DataFrames"):
            session.declare_stream(folders.spec("c"))
