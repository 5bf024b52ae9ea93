"""A query that takes too long is stopped between two pieces of its work, and the others do not wait for it."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dovetail.core.errors import EvaluationError
from dovetail.engine.control.registry import QueryState
from dovetail.kernels import gather_rows
from dovetail.kernels.evaluate import sizes, strings, work_limit
from dovetail.kernels.evaluate.evaluate import evaluate, evaluate_mask
from dovetail.plan.group_plan import GroupPlan
from dovetail.plan.store_plan import IndexPlan
from dovetail.runtime import result_sink
from dovetail.runtime.groups import folder
from dovetail.runtime.message import void_messages
from dovetail.runtime.probe import decide_pairs, frame, hop_facts, mapped_bucket, probe_operator
from dovetail.runtime.source import source_operator, store_writer, wanted_rows
from dovetail.runtime.source.build_index import build_index
from dovetail.runtime.stopwatch import Stopwatch
from dovetail.testing.local_session import LocalSession
from tests.support.neighbours import SCHEMA, rows

PIECE = 16


def work_in_pieces_of(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for home in (sizes, frame, folder, result_sink):
        monkeypatch.setattr(home, "WORK_BYTES", size)
    monkeypatch.setattr(result_sink, "BYTES_OF_A_PIECE", size)
    monkeypatch.setattr(result_sink, "BYTES_OF_A_ROW", 4 * size)


def test_a_query_is_stopped_when_its_time_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for home in (probe_operator, hop_facts):
        monkeypatch.setattr(home, "ROWS_A_PIECE", PIECE)
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
    work_in_pieces_of(1 << 20, monkeypatch)
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


@pytest.mark.parametrize(
    "sql", ["SELECT k FROM a WHERE length(rpad(s, 100000, 'x')) > 5", "SELECT length(rpad(s, 100000, 'x')) AS n FROM a"]
)
def test_one_evaluation_that_takes_too_long_is_given_up_in_the_middle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    work_in_pieces_of(1 << 17, monkeypatch)
    # Every look at the clock is a second later.
    seconds = itertools.count()
    monkeypatch.setattr(work_limit, "thread_time", lambda: float(next(seconds)))
    padded: list[Any] = []
    pad = strings._pad_of

    def counted(*given: Any, **options: Any) -> Any:
        padded.append(given)
        return pad(*given, **options)

    monkeypatch.setattr(strings, "_pad_of", counted)
    with LocalSession(tmp_path, partitions=1, max_query_ms_per_batch=5_000) as session:
        session.create_stream("a", SCHEMA)
        short = session.create_query("SELECT k FROM a", "short")
        long = session.create_query(sql, "long")
        session.push({"a": rows(*range(100))})
        assert long.status.state is QueryState.QUARANTINED
        assert "takes more than 5,000 ms of work" in str(long.status.error)
        assert 0 < len(padded) < 50
        assert short.status.state is QueryState.RUNNING
        assert session.results("short").num_rows == 100


def test_a_key_that_failed_is_built_no_more_in_its_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither once more over the same rows, nor of the other stream, nor by the probes."""
    built: list[str] = []

    def counted(index: IndexPlan, *given: Any) -> Any:
        built.extend(str(key) for key in index.keys)
        return build_index(index, *given)

    for home in (store_writer, mapped_bucket):
        monkeypatch.setattr(home, "build_index", counted)
    with LocalSession(tmp_path, partitions=2) as session:
        for name in ("a", "b"):
            session.create_stream(name, SCHEMA)
        good = session.create_query("SELECT a.k, b.v FROM a JOIN b ON a.k = b.k", "good")
        session.push({"a": rows(*range(20)), "b": rows(*range(20))})
        bad = session.create_query(
            "SELECT a.k FROM a JOIN b ON CAST(repeat(a.s, 9) AS INT) = CAST(repeat(b.s, 9) AS INT)", "bad"
        )
        built.clear()
        session.push({"a": rows(*range(20)), "b": rows(*range(20))})
        assert bad.status.state is QueryState.QUARANTINED
        assert good.status.state is QueryState.RUNNING
        assert len([key for key in built if "repeat" in key]) == 1


def test_what_a_lost_task_gave_up_is_never_answered_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a task that ran twice, the first run found the query void and the second, whose report counts, did not."""
    monkeypatch.setattr(source_operator, "void_messages", lambda _, count: void_messages({"given_up#1"}, count))
    with LocalSession(tmp_path) as session:
        for name in ("a", "b"):
            session.create_stream(name, SCHEMA)
        given_up = session.create_query("SELECT a.k, b.v FROM a JOIN b ON a.k = b.k", "given_up")
        good = session.create_query("SELECT a.k, b.v FROM a JOIN b ON a.k = b.k AND b.v > 0", "good")
        session.push({"a": rows(*range(9)), "b": rows(*range(9))})
        assert given_up.status.state is QueryState.QUARANTINED
        assert "some answers of the batch are missing" in str(given_up.status.error)
        assert good.status.state is QueryState.RUNNING
        assert session.results("good").num_rows > 0


def test_of_many_pairs_no_more_are_confirmed_than_a_query_may_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    confirmed: list[int] = []

    def counted(expression: Any, read: Any, length: int, **options: Any) -> Any:
        confirmed.append(length)
        return evaluate_mask(expression, read, length, **options)

    monkeypatch.setattr(hop_facts, "ROWS_A_PIECE", PIECE)
    monkeypatch.setattr(decide_pairs, "evaluate_mask", counted)
    with LocalSession(tmp_path, partitions=1, max_pairs_per_batch=4 * PIECE) as session:
        for name in ("a", "b"):
            session.create_stream(name, SCHEMA)
        many = session.create_query("SELECT a.k FROM a JOIN b ON a.s = b.s", "many")
        session.push({"a": rows(*range(60)), "b": rows(*range(60))})
        assert many.status.state is QueryState.QUARANTINED
    assert 0 < sum(confirmed) <= 6 * PIECE


def test_finding_who_uses_a_slow_key_takes_no_longer_than_a_query_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thirty queries join by it, each of rows of its own; the ones with the fewest rows are heard first."""
    tried: list[int] = []

    def slow(index: IndexPlan, read: Any, length: int, *given: Any) -> Any:
        if any("repeat" in str(key) for key in index.keys):
            tried.append(length)
            until = time.thread_time() + 0.002 * length
            while time.thread_time() < until:
                pass
            if length > 4:
                raise EvaluationError("takes too long")
        return build_index(index, read, length, *given)

    monkeypatch.setattr(store_writer, "build_index", slow)
    with LocalSession(tmp_path, partitions=1, max_query_ms_per_batch=100) as session:
        for name in ("a", "b"):
            session.create_stream(name, SCHEMA)
        on = "FROM a JOIN b ON repeat(a.s, 9) = repeat(b.s, 9)"
        few = session.create_query(f"SELECT a.k {on} AND a.d = 1 AND b.d = 1", "few")
        many = [session.create_query(f"SELECT a.k {on} AND a.d > {d} AND b.d > {d}", f"many{d}") for d in range(30)]
        session.push({"a": rows(*range(100)), "b": rows()})
        assert few.status.state is QueryState.RUNNING
        assert {query.status.state for query in many} == {QueryState.QUARANTINED}
        assert len(tried) < 12


def test_of_an_answer_that_is_too_wide_one_column_is_made_in_vain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work_in_pieces_of(1 << 20, monkeypatch)
    made: list[int] = []

    def counted(expression: Any, read: Any, length: int, **options: Any) -> pa.Array:
        made.append(length)
        return evaluate(expression, read, length, **options)

    monkeypatch.setattr(result_sink, "evaluate", counted)
    columns = ", ".join(f"rpad(coalesce(s, ''), {5_000 + number}, 'x') AS c{number}" for number in range(40))
    with LocalSession(tmp_path, partitions=1) as session:
        session.create_stream("a", SCHEMA)
        session.create_query(f"SELECT {columns} FROM a", "wide")
        session.push({"a": rows(*range(100))})
        assert session.results("wide").num_rows == 100
    assert sum(made) == 40 * 100 + 100


AGGREGATES = {
    "largest": "SELECT MAX(rpad(coalesce(a.s, ''), 30000, b.s)) AS x FROM a JOIN b ON a.k = b.k",
    "distinct": "SELECT COUNT(DISTINCT rpad(coalesce(a.s, ''), 30000, b.s)) AS x FROM a JOIN b ON a.k = b.k",
    "by_text": "SELECT rpad(coalesce(a.s, ''), 30000, 'x') AS g, COUNT(*) AS x FROM a JOIN b ON a.k = b.k GROUP BY 1",
    "count": "SELECT COUNT(*) AS x FROM a JOIN b ON a.k = b.k",
}


def test_long_texts_are_folded_in_pieces_to_the_same_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def answers(name: str) -> dict[str, list[dict[str, object]]]:
        with LocalSession(tmp_path / name, factorize=False) as session:
            for stream in ("a", "b"):
                session.create_stream(stream, SCHEMA)
            for query, sql in AGGREGATES.items():
                session.create_query(sql, query)
            session.push({stream: pa.concat_tables([rows(*range(8))] * 4) for stream in ("a", "b")})
            session.push({stream: rows(*range(8)) for stream in ("a", "b")})
            return {query: sorted(session.results(query).to_pylist(), key=str) for query in AGGREGATES}

    at_once = answers("at once")
    work_in_pieces_of(1 << 17, monkeypatch)
    assert answers("in pieces") == at_once


def test_who_shares_groups_with_a_query_that_takes_too_long_has_its_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work_in_pieces_of(1 << 17, monkeypatch)
    charge = folder.GroupFolder._charge_users

    def charge_details(self: folder.GroupFolder, group: GroupPlan, seconds: Mapping[str, float]) -> float:
        """Distinct values take ten seconds, by this clock, all else none."""
        return charge(self, group, dict.fromkeys((table.id for table in group.details if table.id in seconds), 10.0))

    monkeypatch.setattr(folder.GroupFolder, "_charge_users", charge_details)
    join = "FROM a JOIN b ON a.k = b.k GROUP BY a.k"

    def answers(name: str, *, is_long_there: bool) -> list[dict[str, object]]:
        with LocalSession(tmp_path / name, factorize=False, max_query_ms_per_batch=5_000) as session:
            for stream in ("a", "b"):
                session.create_stream(stream, SCHEMA)
            if is_long_there:
                long = session.create_query(f"SELECT a.k, COUNT(DISTINCT rpad(a.s, 30000, b.s)) AS x {join}", "long")
            session.create_query(f"SELECT a.k, SUM(b.v) AS x {join}", "short")
            session.push({stream: pa.concat_tables([rows(*range(8))] * 4) for stream in ("a", "b")})
            assert not is_long_there or long.status.state is QueryState.QUARANTINED
            return sorted(session.results("short").to_pylist(), key=str)

    assert answers("shared", is_long_there=True) == answers("alone", is_long_there=False)


def test_texts_of_joined_rows_are_gathered_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather_rows, "MAX_GATHERED_BYTES", 1 << 17)
    work_in_pieces_of(1 << 17, monkeypatch)
    table = rows(*range(8)).set_column(SCHEMA.names.index("s"), "s", pa.array([str(k) * 5_000 for k in range(8)]))
    with LocalSession(tmp_path) as session:
        for stream in ("a", "b"):
            session.create_stream(stream, SCHEMA)
        session.create_query("SELECT a.s, b.s AS t FROM a JOIN b ON a.k = b.k", "pairs")
        session.create_query("SELECT MAX(a.s) AS s, COUNT(*) AS n FROM a JOIN b ON a.k = b.k", "largest")
        session.push({stream: pa.concat_tables([table] * 4) for stream in ("a", "b")})
        pairs = session.results("pairs").to_pylist()
        assert session.results("largest").to_pylist() == [{"s": max(row["s"] for row in pairs), "n": len(pairs)}]
        assert len(pairs) == sum(16 * count**2 for count in Counter(table.column("k").to_pylist()).values())


def test_windows_without_number_stop_their_query_before_they_are_made(tmp_path: Path) -> None:
    """Each row is in 86 million of them."""
    schema = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
    table = pa.table({"k": [1, 2, 3], "ts": [0, 500, 100_000_000]}, schema)
    with LocalSession(tmp_path, max_pairs_per_batch=1_000) as session:
        session.create_stream("a", schema, "ts")
        many = session.create_query(
            "SELECT k, COUNT(*) AS n FROM a GROUP BY k, window(ts, '1 day', '1 millisecond')", "many"
        )
        session.create_query("SELECT k, COUNT(*) AS n FROM a GROUP BY k, window(ts, '10 seconds', '5 seconds')", "few")
        session.push({"a": table})
        assert many.status.state is QueryState.QUARANTINED
        assert "max_pairs_per_batch = 1,000" in str(many.status.error)
        assert sorted(session.results("few").column("k").to_pylist()) == [1, 1, 2, 2]
