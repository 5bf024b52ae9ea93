"""Changes take effect while no stream sends: a batch without rows is run for them, and counts as every other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dovetail import Session
from dovetail.query.stream_spec import StreamSpec
from dovetail.query.types import BIGINT, TIMESTAMP

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PATIENCE_S = 120.0
SQL = "SELECT a.k FROM a JOIN b ON a.k = b.k WITHIN 10 SECONDS"


class Setting:
    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        for name in "ab":
            (folder / name).mkdir()

    def open(self) -> Session:
        session = Session(self.spark, self.folder / "checkpoint", partitions=2, key_groups=8)
        for name in "ab":
            columns = (("k", BIGINT), ("ts", TIMESTAMP))
            session.declare_stream(StreamSpec(name, columns, "json", {"path": str(self.folder / name)}, "ts", "1 hour"))
        return session

    def add(self, key: int) -> None:
        for name in "ab":
            draft = self.folder / f".{name}"
            draft.write_text(json.dumps({"k": key, "ts": "2026-01-01T00:00:00Z"}))
            draft.rename(self.folder / name / f"{key}.json")


@pytest.fixture
def setting(spark: SparkSession, tmp_path: Path) -> Setting:
    return Setting(spark, tmp_path)


def settled(session: Session, name: str) -> str:
    query = session.query(name)
    return session.engine.queries.await_effect(query.id, PATIENCE_S).state.value


def test_queries_come_and_go_while_no_row_comes(setting: Setting) -> None:
    session = setting.open()
    session.create_query(SQL, name="first")
    session.start()
    assert settled(session, "first") == "running"
    second = session.create_query(SQL, name="second")
    assert settled(session, "second") == "running"
    session.query("first").drop()
    assert settled(session, "first") == "dropped"
    setting.add(1)
    session.process_all_available()
    assert [row.k for row in second.results().collect()] == [1]
    batch = session.engine.head.batch
    session.stop()

    again = setting.open()
    again.query("second").drop()
    third = again.create_query(SQL, name="third")
    again.start()
    assert (settled(again, "second"), settled(again, "third")) == ("dropped", "running")
    assert again.engine.head.batch > batch
    setting.add(2)
    again.process_all_available()
    assert sorted(row.k for row in third.results().collect()) == [2]
    again.stop()


def test_no_batch_is_run_without_a_change(setting: Setting) -> None:
    session = setting.open()
    session.create_query(SQL, name="q")
    session.start()
    assert settled(session, "q") == "running"
    session.process_all_available()
    batch = session.engine.head.batch
    setting.add(1)
    session.process_all_available()
    assert session.engine.head.batch <= batch + 2
    assert len(list((setting.folder / "checkpoint" / "control").iterdir())) <= 2
    session.stop()
