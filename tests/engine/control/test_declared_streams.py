"""Streams that are declared: durable, back after a restart, and new ones between two batches."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from dovetail.core.errors import QueryError, SessionError, StreamError
from dovetail.core.sealed_file import sealed
from dovetail.query.stream_spec import StreamSpec
from dovetail.query.types import INT, TIMESTAMP
from dovetail.testing.faults import Faults, SimulatedCrash
from dovetail.testing.local_session import LocalSession

if TYPE_CHECKING:
    from conftest import Bench

RowsOf = Callable[[LocalSession, str], list[tuple[Any, ...]]]

COLUMNS = (("k", INT), ("v", INT), ("ts", TIMESTAMP))
Q = "SELECT a.v, b.v FROM a JOIN b ON a.k = b.k WITHIN 1 HOUR"


def table_of(rows: list[tuple[int, int, float]]) -> pa.Table:
    """Rows of k, v and seconds."""
    times = pa.array([int(row[2] * 1e6) for row in rows], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    numbers = [pa.array([row[place] for row in rows], pa.int32()) for place in (0, 1)]
    return pa.table({"k": numbers[0], "v": numbers[1], "ts": times})


def files(name: str, **options: str) -> StreamSpec:
    return StreamSpec(name, COLUMNS, "parquet", {"path": f"/data/{name}", **options}, "ts")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


def test_a_declared_stream_is_back_after_a_restart_before_and_after_its_first_batch(
    root: Path, rows_of: RowsOf
) -> None:
    session = LocalSession(root)
    session.engine.streams.declare(files("a"))
    session.close()

    again = LocalSession(root)
    assert set(again.engine.streams.by_name) == {"a"}
    again.engine.streams.declare(files("b"))
    again.create_query(Q, "q")
    again.push({"a": table_of([(1, 10, 0.0)])})
    again.close()

    third = LocalSession(root)
    assert third.engine.streams.declared() == {"a": files("a"), "b": files("b")}
    third.push({"b": table_of([(1, 20, 1.0)])})
    assert rows_of(third, "q") == [(10, 20)]
    third.close()


def test_the_same_declaration_again_is_no_change_and_another_is_refused(root: Path) -> None:
    session = LocalSession(root)
    engine = session.engine
    engine.streams.declare(files("a"), request="r1")
    engine.streams.declare(files("a"), request="r1")
    engine.streams.declare(files("a"), request="r2")
    engine.streams.declare(files("a"))
    assert len(list((root / "changelog").glob("*.json"))) == 1
    session.push({})
    with pytest.raises(StreamError, match="declared already") as caught:
        engine.streams.declare(files("a", maxFilesPerTrigger="1"))
    assert "options = {'path': '/data/a'}" in str(caught.value)
    with pytest.raises(QueryError, match="used before for another change"):
        engine.streams.declare(files("b"), request="r1")
    session.close()


def test_a_name_that_differs_only_in_case_is_refused(root: Path) -> None:
    session = LocalSession(root)
    session.engine.streams.declare(files("views"))
    with pytest.raises(StreamError, match="only in case"):
        session.engine.streams.declare(files("Views"))
    with pytest.raises(StreamError, match="only in case"):
        session.create_stream("VIEWS", pa.schema([("k", pa.int64())]))
    session.close()


def test_frames_whose_names_differ_only_in_case_are_refused(root: Path) -> None:
    session = LocalSession(root)
    session.create_stream("abc", pa.schema([("k", pa.int64())]))
    with pytest.raises(StreamError, match="only in case"):
        session.create_stream("ABC", pa.schema([("k", pa.int64())]))
    session.close()


def test_what_differs_is_said_without_secrets(root: Path) -> None:
    session = LocalSession(root)
    session.engine.streams.declare(files("a", **{"my.own": "old"}))
    with pytest.raises(StreamError, match="declared already") as caught:
        session.engine.streams.declare(files("a", **{"my.own": "new"}))
    assert "old" not in str(caught.value).replace("/data/a", "")
    session.close()


def test_a_declaration_survives_a_crash_before_its_batch_commits(root: Path, rows_of: RowsOf) -> None:
    session = LocalSession(root, faults=Faults(crash_at="before_manifest"))
    session.engine.streams.declare(files("a"))
    session.engine.streams.declare(files("b"))
    session.create_query(Q, "q")
    with pytest.raises(SimulatedCrash):
        session.push({"a": table_of([(1, 10, 0.0)])})
    session.close()
    again = LocalSession(root)
    again.push({"a": table_of([(1, 10, 0.0)]), "b": table_of([(1, 20, 0.0)])})
    assert rows_of(again, "q") == [(10, 20)]
    again.close()


def test_a_query_on_a_stream_that_came_later_uses_all_that_stores_hold(root: Path, rows_of: RowsOf) -> None:
    session = LocalSession(root)
    session.engine.streams.declare(files("a"))
    session.create_query("SELECT l.v FROM a l JOIN a r ON l.k = r.k WITHIN 1 HOUR", "keeps_a")
    session.push({"a": table_of([(1, 10, 0.0)])})
    session.engine.streams.declare(files("b"))
    early = session.create_query(Q, "early")
    session.push({"b": table_of([(1, 20, 1.0)])})
    assert early.status.complete_from == 0, "of b nothing was missed, and a was kept"
    assert rows_of(session, "early") == [(10, 20)]

    session.engine.streams.declare(files("c"))
    session.push({"c": table_of([(1, 30, 2.0)])})
    late = session.create_query(Q.replace("b", "c"), "late")
    session.push({"c": table_of([(1, 31, 3.0)])})
    assert late.status.complete_from == 3, "nobody kept the first row of c"
    assert rows_of(session, "late") == [], "the row of a came before batch 3"
    session.push({"a": table_of([(1, 11, 4.0)])})
    assert rows_of(session, "late") == [(11, 31)]
    session.close()

    again = LocalSession(root)
    again.push({"b": table_of([(1, 21, 5.0)])})
    assert rows_of(again, "early") == [(10, 20), (10, 21), (11, 20), (11, 21)]
    again.close()


def test_streams_of_dataframes_keep_a_checkpoint_as_it_is(bench: Bench) -> None:
    session = bench.open()
    with pytest.raises(StreamError, match="'a' was registered as a DataFrame"):
        session.engine.streams.declare(files("a"))
    session.engine.streams.declare(files("c"))
    session.push({"c": table_of([(1, 1, 0.0)])})
    session.close()
    again = bench.open()
    assert set(again.engine.streams.by_name) == {"a", "b", "c"}
    with pytest.raises(SessionError, match=r"reads a, b from DataFrames") as caught:
        again.engine.streams.declare(files("d"))
    assert "declare every stream" in str(caught.value)
    again.push({})


def test_a_dataframe_cannot_join_a_checkpoint_of_declared_streams(root: Path) -> None:
    session = LocalSession(root)
    session.engine.streams.declare(files("a"))
    session.push({})
    session.create_stream("b", table_of([]).schema, event_time="ts")
    with pytest.raises(SessionError, match="new: b"):
        session.push({})
    session.close()


def test_a_wrong_declaration_never_reaches_the_changelog(root: Path) -> None:
    session = LocalSession(root)
    with pytest.raises(StreamError):
        session.engine.streams.declare(replace(files("a"), event_time="when"))
    assert list((root / "changelog").glob("*.json")) == []
    session.close()


def test_a_query_that_does_not_compile_any_more_is_stopped_alone(root: Path, rows_of: RowsOf) -> None:
    """As after an upgrade that refuses a text which was taken before."""
    session = LocalSession(root)
    for name in ("a", "b"):
        session.engine.streams.declare(files(name))
    session.create_query(Q, "good")
    bad = session.create_query(Q, "bad")
    session.close()
    for path in (root / "changelog").glob("*.json"):
        record = json.loads(path.read_text().partition("\n")[0])
        if record["name"] == "bad":
            path.write_text(sealed({**record, "sql": "SELECT a.v FROM nowhere"}))
    again = LocalSession(root)
    again.push({"a": table_of([(1, 1, 0)]), "b": table_of([(1, 2, 0)])})
    assert len(rows_of(again, "good")) == 1
    record = again.engine.queries.record(bad.id)
    assert (record.state.value, record.failed_batch) == ("quarantined", 0)
    assert "does not compile any more" in str(record.error)
    again.close()
