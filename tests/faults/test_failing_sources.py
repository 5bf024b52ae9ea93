"""A source that fails takes nobody with it, and is read on from where it was once it answers again."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dovetail import Session
from dovetail.query.stream_spec import StreamSpec
from tests.support.flaky_source import FlakySource
from tests.support.parquet_folders import COLUMNS, PAIRS, SECOND, Folders, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PATIENCE_S = 120
ALONE = "SELECT a.v AS l, c.v AS r FROM a JOIN c ON a.k = c.k AND c.ts BETWEEN a.ts AND a.ts + INTERVAL 10 SECONDS"


def answers(session: Session, name: str) -> Counter[tuple[int, int]]:
    return Counter((row.l, row.r) for row in session.query(name).results().collect())


def failing(session: Session) -> dict[str, str]:
    return {stream.name: stream.failing for stream in session.streams if stream.failing is not None}


def wait_until(is_so: object) -> None:
    """Without a sleep of a fixed time."""
    assert callable(is_so)
    never = threading.Event()
    for _ in range(PATIENCE_S * 10):
        if is_so():
            return
        never.wait(0.1)
    raise AssertionError("it never came to that")


def test_a_folder_that_is_gone_at_the_start_is_read_on_once_it_is_back(spark: SparkSession, tmp_path: Path) -> None:
    folders = Folders(tmp_path / "streams")
    with open_session(spark, tmp_path) as session:
        for name in "abc":
            session.declare_stream(folders.spec(name))
        session.create_query(PAIRS, "pairs")
        session.create_query(ALONE, "alone")
        folders.add("a", [(1, 0)])
        folders.add("b", [(2, SECOND)])
        session.start()
        session.process_all_available()
    away = (tmp_path / "streams" / "b").rename(tmp_path / "away")
    with open_session(spark, tmp_path) as session:
        session.start()
        folders.add("c", [(3, SECOND)])
        session.process_all_available()
        assert answers(session, "alone") == Counter({(1, 3): 1})
        assert failing(session).keys() == {"b"}
        assert session.progress is not None
        assert "does not exist" in session.progress["streams"][1]["failing"]["cause"]
        assert session.execute("SHOW STREAMS").rows[1]["failing"] == failing(session)["b"]
        away.rename(tmp_path / "streams" / "b")
        folders.add("b", [(4, 2 * SECOND)])
        wait_until(lambda: not failing(session))
        wait_until(lambda: sum(answers(session, "pairs").values()) >= 2)
        assert answers(session, "pairs") == Counter({(1, 2): 1, (1, 4): 1})
        folders.add("a", [(5, SECOND)])
        session.process_all_available()
        assert answers(session, "pairs") == Counter({(1, 2): 1, (1, 4): 1, (5, 2): 1, (5, 4): 1})


@pytest.mark.slow
def test_a_source_that_fails_while_running_is_left_out_until_it_answers(spark: SparkSession, tmp_path: Path) -> None:
    spark.dataSource.register(FlakySource)
    folders, flaky = Folders(tmp_path / "streams"), tmp_path / "flaky"
    flaky.mkdir()
    (flaky / "lines").write_text("2\n")
    with open_session(spark, tmp_path) as session:
        for name in "ac":
            session.declare_stream(folders.spec(name))
        session.declare_stream(StreamSpec("b", COLUMNS, "flaky", {"folder": str(flaky)}, "ts"))
        session.create_query(PAIRS, "pairs")
        session.create_query(ALONE, "alone")
        folders.add("a", [(1, 0)])
        session.start()
        session.process_all_available()
        assert answers(session, "pairs") == Counter({(1, 2): 1})
        (flaky / "broken").touch()
        wait_until(lambda: failing(session))
        assert "the broker is away" in failing(session)["b"]
        folders.add("c", [(3, SECOND)])
        session.process_all_available()
        assert answers(session, "alone") == Counter({(1, 3): 1})
        (flaky / "lines").write_text("2\n4\n")
        (flaky / "broken").unlink()
        wait_until(lambda: not failing(session))
        wait_until(lambda: sum(answers(session, "pairs").values()) >= 2)
        folders.add("a", [(5, SECOND)])
        session.process_all_available()
        assert answers(session, "pairs") == Counter({(1, 2): 1, (1, 4): 1, (5, 2): 1, (5, 4): 1})
