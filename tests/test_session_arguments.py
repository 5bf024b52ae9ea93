"""Arguments that cannot work are refused with what to write, before anything is made."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dovetail import Session
from dovetail.core.errors import QueryError, SessionError, StreamError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

JOIN = "SELECT a.k, b.k AS other FROM a JOIN b ON a.k = b.k"


class Streams:
    """A session over folders `a` and `b`, which never starts."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self._opened: list[Session] = []
        for name in ("a", "b"):
            (folder / name).mkdir()
        self.session = self.new_session()
        for name in ("a", "b"):
            self.session.create_stream(name, self.frame(name), event_time="ts")

    def frame(self, name: str) -> DataFrame:
        return self.spark.readStream.schema("k INT, ts TIMESTAMP").parquet(str(self.folder / name))

    def new_session(self) -> Session:
        self._opened.append(Session(self.spark, self.folder / f"checkpoint{len(self._opened)}", partitions=2))
        return self._opened[-1]

    def close(self) -> None:
        for session in self._opened:
            session.stop()


@pytest.fixture
def streams(spark: SparkSession, tmp_path: Path) -> Iterator[Streams]:
    streams = Streams(spark, tmp_path)
    yield streams
    streams.close()


def test_a_sink_where_a_frame_reads_is_refused(streams: Streams) -> None:
    session = streams.session
    for path in (streams.folder / "a", streams.folder / "b" / "x", f"file:{streams.folder}/a"):
        with pytest.raises(QueryError, match=r"where what stream '[ab]' reads is"):
            session.create_query(JOIN, "q", **{"sink": "parquet", "sink.path": str(path)})
    session.create_query(JOIN, "q", **{"sink": "parquet", "sink.path": str(streams.folder / "out")})


def test_a_frame_that_reads_no_files_has_no_folders(streams: Streams, spark: SparkSession) -> None:
    session = streams.new_session()
    session.create_stream("r", spark.readStream.format("rate").load(), event_time="timestamp")
    session.create_query("SELECT r.value FROM r", "q", **{"sink": "parquet", "sink.path": str(streams.folder / "out")})


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"spark": None}, "spark is None"),
        ({"checkpoint_dir": None}, "checkpoint_dir is None"),
        ({"checkpoint_dir": 5}, "checkpoint_dir is 5"),
        ({"checkpoint_dir": " "}, "checkpoint_dir is ' '"),
        ({"checkpoint_dir": "/dev/null"}, "checkpoint_dir '/dev/null' cannot be used: a file is there"),
        ({"checkpoint_dir": "/dev/null/x"}, "checkpoint_dir '/dev/null/x' cannot be used: a file is there"),
        ({"checkpoint_dir": "/proc/x"}, "checkpoint_dir '/proc/x' cannot be used"),
        ({"checkpoint_dir": "a\0b"}, "cannot be used: embedded null byte"),
        ({"checkpoint_dir": "a\ud800"}, "cannot be used"),
        ({"partitions": "x"}, "partitions is 'x'"),
        ({"key_groups": None}, "key_groups is None"),
        ({"trigger": 5}, "trigger 5: 5 is no text"),
    ],
)
def test_a_session_of_wrong_arguments_is_refused_and_makes_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], what: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SessionError, match=what) as caught:
        Session(**{"spark": spark, "checkpoint_dir": "ck", **given})
    assert caught.value.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"name": None}, "None cannot name a stream"),
        ({"df": None}, "stream 'z' is None, and no DataFrame"),
        ({"df": "parquet"}, "stream 'z' is 'parquet', and no DataFrame"),
        ({"lateness": 5}, "stream 'z': lateness: 5 is no text"),
        ({"lateness": datetime.timedelta(seconds=5)}, "lateness: datetime.timedelta"),
        ({"event_time": ["ts"]}, "stream 'z': event_time is"),
    ],
)
def test_a_stream_of_wrong_arguments_is_refused(streams: Streams, given: dict[str, Any], what: str) -> None:
    session = streams.new_session()
    with pytest.raises(StreamError, match=what) as caught:
        session.create_stream(**{"name": "z", "df": streams.frame("a"), "event_time": "ts", **given})
    assert caught.value.hint


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda session: session.create_query(None), "the query is a NoneType"),
        (lambda session: session.create_query(["SELECT"]), "the query is a list"),
        (lambda session: session.execute(5), "the statement is a int"),
        (lambda session: session.create_query(JOIN, request=5), "request is 5"),
        (lambda session: session.query("q").foreach_batch(None), "what to call for each batch is None"),
        (lambda session: session.query("q").foreach_batch(print, after="1"), "after is '1'"),
    ],
)
def test_calls_of_wrong_arguments_are_refused(streams: Streams, call: Callable[[Session], object], what: str) -> None:
    session = streams.session
    session.create_query(JOIN, "q")
    with pytest.raises(QueryError, match=what) as caught:
        call(session)
    assert caught.value.hint


def test_bad_rows_are_asked_for_by_the_name_of_a_stream(streams: Streams) -> None:
    with pytest.raises(StreamError, match="no stream"):
        streams.session.bad_rows([])  # type: ignore[arg-type]
