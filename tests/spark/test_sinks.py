"""Answers in Spark's own sinks: what arrives, what is written again, what a broken sink says."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dovetail import Session
from dovetail.engine.delivery.deliveries import Deliveries
from dovetail.engine.delivery.marks import DeliveryMarks
from dovetail.engine.options import EngineTuning

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PATIENCE_S = 120.0
SQL = "SELECT a.k, a.v, b.v FROM a JOIN b ON a.k = b.k WITHIN 100 SECONDS"
START = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
BATCHES = 3
ROWS = 40


class Setting:
    """Streams `a` and `b`: three batches of forty rows each, row k of one meets row k of the other."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        for name in ("a", "b"):
            (folder / name).mkdir()
            for batch in range(BATCHES):
                path = folder / name / f"{batch}.parquet"
                pq.write_table(rows_of(batch), path)
                os.utime(path, (1_700_000_000 + batch, 1_700_000_000 + batch))

    def open(self) -> Session:
        session = Session(
            self.spark, self.folder / "checkpoint", partitions=2, key_groups=16, tuning=EngineTuning(small_batch_rows=0)
        )
        for name in ("a", "b"):
            reader = self.spark.readStream.schema("k INT, v INT, ts TIMESTAMP").option("maxFilesPerTrigger", 1)
            session.create_stream(name, reader.parquet(str(self.folder / name)), event_time="ts")
        return session

    def run(self, session: Session) -> None:
        session.start(trigger="available_now")
        assert session.await_termination(PATIENCE_S)


def rows_of(batch: int) -> pa.Table:
    keys = list(range(batch * ROWS, (batch + 1) * ROWS))
    times = [START + datetime.timedelta(seconds=batch)] * ROWS
    values = [key % 8 for key in keys]
    columns = [pa.array(keys, pa.int32()), pa.array(values, pa.int32()), pa.array(times, pa.timestamp("us", "UTC"))]
    return pa.table(columns, names=["k", "v", "ts"])


@pytest.fixture
def setting(spark: SparkSession, tmp_path: Path) -> Setting:
    return Setting(spark, tmp_path)


def test_a_folder_per_batch_holds_every_answer_once_even_if_it_is_delivered_twice(setting: Setting) -> None:
    out = setting.folder / "out"
    session = setting.open()
    options: dict[str, Any] = {
        "sink": "parquet",
        "sink.path": f"{out}/batch={{batch}}",
        "sink.mode": "overwrite",
        "sink.identify": "true",
    }
    query = session.create_query(SQL, name="q", **options)
    tables: list[pa.Table] = []
    function = query.foreach_batch(lambda table, _batch: tables.append(table))
    setting.run(session)
    assert query.await_delivered(PATIENCE_S)
    assert function.await_delivered(PATIENCE_S)
    assert (query.status.delivered_batch, query.status.sink_error) == (BATCHES - 1, None)
    first = answers(setting, out)
    assert len(first) == len({row[3:] for row in first}) == BATCHES * ROWS
    assert {(row[3], row[4]) for row in first} == {(query.id, batch) for batch in range(BATCHES)}
    assert {row[5] for row in first} == set(range(ROWS))
    assert sorted(k for table in tables for k in table.column("k").to_pylist()) == list(range(BATCHES * ROWS))
    # Two rows of the same name get names of their own, as in the result files.
    assert tables[0].column_names == ["k", "v", "v_2"]
    session.stop()

    DeliveryMarks(setting.folder / "checkpoint").write(query.id, 0)
    (out / "batch=0").rename(out / "kept")
    again = setting.open()
    setting.run(again)
    assert again.query("q").await_delivered(PATIENCE_S)
    again.stop()
    assert not (out / "batch=0").exists()
    (out / "kept").rename(out / "batch=0")
    assert answers(setting, out) == first


def test_a_broken_sink_says_so_while_batches_go_on_and_its_successor_gets_everything(setting: Setting) -> None:
    out = setting.folder / "out"
    session = setting.open()
    query = session.create_query(SQL, name="q", sink="no.such.format")
    setting.run(session)
    assert not query.await_delivered(0.5)
    status = query.status
    assert (status.state, status.total_rows, status.delivered_batch) == ("running", BATCHES * ROWS, -1)
    assert "no.such.format" in str(status.sink_error)
    query.set_options(**{"sink": "json", "sink.path": str(out), "sink.partitionBy": "v"})
    pq.write_table(rows_of(BATCHES), setting.folder / "a" / f"{BATCHES}.parquet")
    setting.run(session)
    assert query.await_delivered(PATIENCE_S)
    assert query.status.sink_error is None
    written = setting.spark.read.json(str(out))
    assert written.count() == BATCHES * ROWS
    assert (out / "v=7").is_dir()
    session.stop()


def test_a_stop_that_fails_on_its_way_leaves_the_checkpoint_free(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_deliveries: Deliveries, _timeout_s: float) -> bool:
        raise OSError("too many open files")

    session = setting.open()
    with monkeypatch.context() as patch:
        patch.setattr(Deliveries, "stop", fail)
        with pytest.raises(OSError, match="too many open files"):
            session.stop()
    setting.open().stop()
    session.stop()


def answers(setting: Setting, out: Path) -> list[tuple[Any, ...]]:
    columns = ["k", "v", "v_2", "dovetail_query", "dovetail_batch", "dovetail_sequence"]
    return sorted(tuple(row) for row in setting.spark.read.parquet(str(out)).select(*columns).collect())


def test_a_secret_is_resolved_when_the_sink_is_written_and_stands_nowhere(
    setting: Setting, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    taken = setting.folder / "hunter2"
    taken.write_text("a file, where a folder is wanted")
    session = setting.open()
    query = session.create_query(SQL, name="q", **{"sink": "json", "sink.path": "secret://env/DOVETAIL_TEST_SINK"})
    monkeypatch.setenv("DOVETAIL_TEST_SINK", str(taken))
    setting.run(session)
    assert not query.await_delivered(1.0)
    assert "***" in str(query.status.sink_error)
    monkeypatch.setenv("DOVETAIL_TEST_SINK", str(setting.folder / "hunter2s"))
    assert query.await_delivered(PATIENCE_S)
    assert setting.spark.read.json(str(setting.folder / "hunter2s")).count() == BATCHES * ROWS
    assert "hunter2" not in caplog.text
    session.stop()
    for path in (setting.folder / "checkpoint").rglob("*"):
        assert not path.is_file() or b"hunter2" not in path.read_bytes(), path
