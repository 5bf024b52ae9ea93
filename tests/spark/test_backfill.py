"""Queries that also answer what was before them: old files are read again, exactly those of each batch."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dovetail import Session
from dovetail.core.errors import QueryError
from dovetail.engine.backfill import thread as backfill_thread
from dovetail.query.stream_spec import StreamSpec, stream_spec
from dovetail.query.types import BIGINT, TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

COLUMNS = (("k", BIGINT), ("v", BIGINT), ("ts", TIMESTAMP))
JOIN = "SELECT a.v AS av, b.v AS bv FROM a JOIN b ON a.k = b.k WITHIN 3 SECONDS"
PATIENCE_S = 90
FIRST_FILE_AT = 1_700_000_000
FAR = 100_000


class Files:
    """Streams `a` and `b`, a file each per batch; names that need escaping; values tell the file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seconds: list[int] = []
        for name in "ab":
            (folder / name).mkdir(parents=True)

    def path(self, name: str, number: int) -> Path:
        sign = "[x]" if number % 2 else ""
        return self.folder / name / f"part {number}+50%25{sign}.parquet"

    def add(self, second: int) -> None:
        number = len(self.seconds)
        self.seconds.append(second)
        for name in "ab":
            table = pa.table(
                {
                    "k": pa.array([1, number % 3], pa.int64()),
                    "v": pa.array([number, -number], pa.int64()),
                    "ts": pa.array([1_000_000 * second] * 2).cast(pa.timestamp("us", tz="UTC")),
                }
            )
            hidden = self.folder / f".{name}"
            pq.write_table(table, hidden)
            os.utime(hidden, (FIRST_FILE_AT + number,) * 2)
            hidden.rename(self.path(name, number))

    def declare(self, session: Session) -> None:
        for name in "ab":
            session.declare_stream(self.spec(name))

    def spec(self, name: str) -> StreamSpec:
        given = {"format": "parquet", "path": str(self.folder / name), "maxFilesPerTrigger": 1, "event_time": "ts"}
        return stream_spec(name, COLUMNS, {**given, "lateness": "1 second"})

    def expected(self) -> Counter[tuple[int, int]]:
        """What batch SQL says of all rows that were not late."""
        rows = []
        newest = None
        for number, second in enumerate(self.seconds):
            if newest is None or second >= newest - 1:
                rows += [(1, number, second), (number % 3, -number, second)]
            newest = second if newest is None else max(newest, second)
        return Counter((av, bv) for ak, av, at in rows for bk, bv, bt in rows if ak == bk and abs(at - bt) <= 3)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path / "in")


@pytest.fixture(autouse=True)
def _no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backfill_thread, "REST_PER_WORK", 0.0)


@pytest.fixture
def forgetful(spark: SparkSession) -> Iterator[None]:
    """Spark forgets the offsets of all but its last batches."""
    key = "spark.sql.streaming.minBatchesToRetain"
    spark.conf.set(key, "2")
    yield
    spark.conf.unset(key)


def answers(query: Any) -> Counter[tuple[int, int]]:
    return Counter((row.av, row.bv) for row in query.results().collect())


def drain(session: Session) -> None:
    session.start("available_now")
    session.await_termination(PATIENCE_S)
    session.stop()


def await_end(session: Session, files: Files, query: Any) -> None:
    """New files keep coming, so the session goes on to adopt what its history finds."""
    deadline = time.monotonic() + PATIENCE_S
    second = FAR
    while query.backfill is None or query.backfill.state == "running":
        assert time.monotonic() < deadline, query.backfill
        files.add(second)
        second += 100
        session.process_all_available()
        time.sleep(0.5)


@pytest.mark.usefixtures("forgetful")
def test_answers_from_before_come_from_the_same_files(spark: SparkSession, tmp_path: Path, files: Files) -> None:
    for second in (0, 1, 2, 4, 1, 5, 6, 4):  # two files are late
        files.add(second)
    first = Session(spark, tmp_path / "checkpoint")
    files.declare(first)
    first.create_query("SELECT a.k FROM a JOIN b ON a.k = b.k AND a.v = 99 WITHIN 1 SECONDS", "other")
    drain(first)
    with Session(spark, tmp_path / "checkpoint") as session:
        query = session.create_query(JOIN, "q", backfill=True)
        files.add(7)
        session.start()
        session.process_all_available()
        assert query.status.complete_from == 8
        files.add(8)
        session.process_all_available()
        await_end(session, files, query)
        assert (query.backfill.state, query.backfill.error) == ("done", None)
        assert query.status.complete_from == 0
        assert answers(query) == files.expected()


def test_a_backfill_goes_on_after_a_restart(spark: SparkSession, tmp_path: Path, files: Files) -> None:
    for second in range(4):
        files.add(second)
    first = Session(spark, tmp_path / "checkpoint")
    files.declare(first)
    drain(first)
    files.add(4)
    second = Session(spark, tmp_path / "checkpoint")
    second.create_query(JOIN, "q", backfill=True)
    drain(second)  # in effect, and perhaps a chunk ran
    with Session(spark, tmp_path / "checkpoint") as session:
        assert session.query("q").backfill.state == "running"
        session.start()
        await_end(session, files, session.query("q"))
        assert session.query("q").backfill.state == "done"
        assert answers(session.query("q")) == files.expected()


def test_a_file_that_is_gone_is_named_and_live_answers_go_on(spark: SparkSession, tmp_path: Path, files: Files) -> None:
    for second in range(3):
        files.add(second)
    first = Session(spark, tmp_path / "checkpoint")
    files.declare(first)
    drain(first)
    files.path("b", 1).unlink()
    with Session(spark, tmp_path / "checkpoint") as session:
        query = session.create_query(JOIN, "q", backfill=True)
        files.add(3)
        session.start()
        await_end(session, files, query)
        assert query.backfill.state == "failed"
        assert f"b/{files.path('b', 1).name}" in query.backfill.error
        assert query.status.state == "running"
        assert answers(query)[3, 3] == 1


def test_streams_that_come_only_once_are_refused(spark: SparkSession, tmp_path: Path, files: Files) -> None:
    with Session(spark, tmp_path / "checkpoint") as session:
        for name in "ab":
            frame = spark.readStream.schema("k bigint, v bigint, ts timestamp").parquet(str(files.folder / name))
            session.create_stream(name, frame, event_time="ts")
        with pytest.raises(QueryError, match="stream 'a' is a DataFrame, whose rows come only once"):
            session.create_query(JOIN, "q", backfill=True)
