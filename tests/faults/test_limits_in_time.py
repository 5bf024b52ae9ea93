"""A query that takes too long is stopped between two pieces of its work, and the others do not wait for it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from dovetail.engine.control.registry import QueryState
from dovetail.kernels.evaluate import sizes
from dovetail.runtime import result_sink
from dovetail.runtime.groups import folder
from dovetail.runtime.probe import probe_operator
from dovetail.runtime.source import wanted_rows
from dovetail.runtime.stopwatch import Stopwatch
from dovetail.testing.local_session import LocalSession
from tests.support.neighbours import SCHEMA, rows

PIECE = 16


def test_a_query_is_stopped_when_its_time_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_operator, "ROWS_A_PIECE", PIECE)
    # Every piece takes a second, by this clock, and keys take no time.
    monkeypatch.setattr(Stopwatch, "lap", lambda _: 1.0)
    monkeypatch.setattr(wanted_rows, "SHORT_S", 2.0)
    table = pa.concat_tables([rows(*range(20))] * 4)
    with LocalSession(tmp_path, partitions=1, max_query_ms_per_batch=6_000, max_pairs=PIECE) as session:
        for name in ("a", "b"):
            session.create_stream(name, SCHEMA)
        few = "a.d = b.d AND a.k = 0 AND b.k = 0 AND a.d < 0.5"
        session.create_query(f"SELECT a.k, b.k AS o FROM a JOIN b ON {few}", "short")
        long = session.create_query("SELECT a.k, b.k AS o FROM a JOIN b ON a.v < b.v + 99", "long")
        session.push({"a": table, "b": table})
        assert session.results("short").num_rows == PIECE
        assert long.status.state is QueryState.QUARANTINED
        assert "max_query_ms_per_batch = 6,000" in str(long.status.error)
        work = {query["name"]: query["workMs"] for query in (session.progress or {})["queries"]}
        assert 6_000 < work["long"] < 9_000
        assert 0 < work["short"] <= 6_000


def test_answers_that_have_too_many_bytes_stop_their_query(tmp_path: Path) -> None:
    with LocalSession(tmp_path, max_result_bytes_per_batch=100_000) as session:
        session.create_stream("a", SCHEMA)
        wide = session.create_query("SELECT rpad(s, 100000, 'x') AS t FROM a", "wide")
        session.create_query("SELECT rpad(s, 100, 'x') AS t FROM a", "narrow")
        session.push({"a": rows(*range(6))})
        assert session.results("narrow").num_rows == 6
        assert wide.status.state is QueryState.QUARANTINED
        assert "max_result_bytes_per_batch = 100,000" in str(wide.status.error)


def test_long_answers_are_made_and_written_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "WORK_BYTES", 1 << 20)
    for home in (sizes, result_sink):
        monkeypatch.setattr(home, "MAX_WIDE_BYTES", 1 << 22)
    with LocalSession(tmp_path) as session:
        session.create_stream("a", SCHEMA)
        session.create_query("SELECT k, rpad(coalesce(s, ''), 100000, 'x') AS t FROM a", "long")
        session.push({"a": pa.concat_tables([rows(*range(8))] * 8)})
        found = session.results("long")
        assert found.num_rows == 64
        assert set(map(len, found.column("t").to_pylist())) == {100_000}


def test_a_key_that_takes_long_is_charged_to_who_joins_by_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wanted_rows, "SHORT_S", 0.0)
    # Every index takes a second, by this clock.
    monkeypatch.setattr(Stopwatch, "lap", lambda _: 1.0)
    with LocalSession(tmp_path, partitions=1) as session:
        for name in ("a", "b"):
            session.create_stream(name, SCHEMA)
        session.create_query("SELECT a.k FROM a JOIN b ON repeat(a.s, 9) = repeat(b.s, 9) AND a.d < 0", "long")
        session.create_query("SELECT k FROM a WHERE d < 0", "short")
        session.push({"a": rows(*range(20)), "b": rows(*range(20))})
        work = {query["name"]: query["workMs"] for query in (session.progress or {})["queries"]}
        assert work["long"] >= 1_000
        assert work["short"] < 1_000


def test_an_aggregate_that_takes_long_is_charged_to_who_asks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ask for groups of the same rows by the same keys, so they are folded together."""
    table = pa.concat_tables([rows(*range(20))] * 50)
    monkeypatch.setattr(folder, "SHORT_S", 0.0)
    with LocalSession(tmp_path, partitions=1) as session:
        session.create_stream("a", SCHEMA)
        session.create_query("SELECT MAX(rpad(s, 20000, 'y')) AS x FROM a", "long")
        session.create_query("SELECT MAX(v) AS x FROM a", "short")
        session.push({"a": table})
        session.push({"a": table})
        work = {query["name"]: query["workMs"] for query in (session.progress or {})["queries"]}
        assert work["long"] > 2 * work["short"]
