"""What factorized aggregates cost, which limits they pass, and what happens where a run cannot be folded."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dovetail.engine.explain.explain import explain_plan, explain_query
from dovetail.testing.local_session import LocalSession

SCHEMA = pa.schema([("k", pa.int64()), ("g", pa.string()), ("v", pa.int32()), ("ts", pa.timestamp("us", "UTC"))])
ROWS = 40_000
TOTALS = "SELECT COUNT(*) AS n, SUM(a.v) AS x, SUM(b.v) AS y FROM a JOIN b ON a.k = b.k"


def rows(keys: list[int], values: list[int] | None = None, *, names: list[str] | None = None) -> pa.Table:
    count = len(keys)
    columns: dict[str, Any] = {"k": keys, "g": names or ["g"] * count, "v": values or [1] * count}
    return pa.table(columns | {"ts": pa.array(range(count), pa.int64()).cast(SCHEMA.field("ts").type)}, SCHEMA)


class Sessions:
    """Opens sessions with streams a and b, each in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.opened: list[LocalSession] = []

    def open(self, **options: Any) -> LocalSession:
        session = LocalSession(self._folder / str(len(self.opened)), **options)
        self.opened.append(session)
        for name in ("a", "b"):
            session.create_stream(name, SCHEMA, event_time="ts", lateness="1 day")
        return session


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[Sessions]:
    sessions = Sessions(tmp_path)
    yield sessions
    for session in sessions.opened:
        session.close()


def work_of(session: LocalSession) -> int:
    """Rows that probed or were walked in the last batch, and pairs that were built."""
    partitions = (session.progress or {})["work"]["partitions"]
    return sum(entry["probedRows"] + entry["pairs"] for entry in partitions)


@pytest.mark.parametrize("sql", [TOTALS, f"{TOTALS} AND a.ts <= b.ts + INTERVAL 1 HOUR GROUP BY a.g"])
def test_work_does_not_grow_with_results(sessions: Sessions, sql: str) -> None:
    work = {}
    for results_a_row in (10, 1000):
        session = sessions.open()
        session.create_query(sql, "q")
        keys = [place % (ROWS // results_a_row) for place in range(ROWS)]
        for _ in range(2):
            session.push({"a": rows(keys), "b": rows(keys)})
        assert session.results("q").column("n").to_pylist() == [4 * ROWS * results_a_row]
        work[results_a_row] = work_of(session)
    assert work[1000] <= work[10]
    # Both sides probe, and walk or are walked in the buckets of two batches.
    assert work[10] <= 6 * ROWS


def test_a_query_that_builds_no_rows_does_not_pass_a_limit_of_them(sessions: Sessions) -> None:
    keys = [1] * 200
    for factorize in (True, False):
        session = sessions.open(factorize=factorize, max_pairs_per_batch=10_000)
        query = session.create_query(TOTALS, "q")
        session.push({"a": rows(keys), "b": rows(keys)})
        assert (query.status.error is None) == factorize


def test_a_value_that_fails_on_a_row_that_meets_nobody_fails_nobody(sessions: Sessions) -> None:
    for factorize in (True, False):
        session = sessions.open(factorize=factorize)
        query = session.create_query("SELECT a.k, SUM(100 / b.v) AS s FROM a JOIN b ON a.k = b.k GROUP BY a.k", "q")
        session.push({"a": rows([1, 1, 2]), "b": rows([1, 2, 3], [5, 4, 0])})
        assert query.status.error is None
        assert sorted(session.results("q").to_pylist(), key=str) == [{"k": 1, "s": 40.0}, {"k": 2, "s": 25.0}]
        session.push({"a": rows([3])})
        assert "zero" in (query.status.error or "").lower()


def test_values_of_both_sides_are_counted_where_both_are_there(sessions: Sessions) -> None:
    session = sessions.open()
    session.create_query("SELECT COUNT(a.v, b.v) AS n, COUNT(a.v) AS x, COUNT(*) AS m FROM a JOIN b ON a.k = b.k", "q")
    session.push({"a": rows([1, 1], [1, None]), "b": rows([1, 1, 1], [None, 2, 3])})
    assert session.results("q").to_pylist() == [{"n": 2, "x": 3, "m": 6}]


@pytest.mark.parametrize("factorize", [True, False])
@pytest.mark.parametrize("join", ["a LEFT JOIN {d}", "{d} RIGHT JOIN a", "a FULL JOIN {d}"])
def test_what_the_padded_side_computes_is_there_where_its_row_is(
    sessions: Sessions, join: str, factorize: bool
) -> None:
    computed = (
        "(SELECT k, v + 0 AS w, 7 AS seven, CAST(NULL AS INT) AS nothing, -CAST(0 AS DOUBLE) AS z, ts FROM b) AS d"
    )
    sql = f"""SELECT a.k, SUM(d.w) AS s, COUNT(d.seven) AS n, MIN(d.seven) AS m, COUNT(d.nothing) AS o, MAX(d.z) AS z
              FROM {join.format(d=computed)} ON a.k = d.k
                AND d.ts BETWEEN a.ts - INTERVAL 10 SECONDS AND a.ts + INTERVAL 10 SECONDS GROUP BY a.k"""
    for order in ("a", "b"), ("b", "a"):
        session = sessions.open(factorize=factorize)
        session.create_query(sql, "q")
        for name in order:
            session.push({name: rows([1, 1], [5, 6])})
        (found,) = session.results("q").to_pylist()
        assert found == {"k": 1, "s": 22, "n": 4, "m": 7, "o": 0, "z": 0.0}
        assert math.copysign(1, found["z"]) == -1


def test_rows_of_queries_that_are_not_aggregated_are_built_beside(sessions: Sessions) -> None:
    session = sessions.open()
    session.create_query(TOTALS, "q")
    session.create_query("SELECT a.v, b.v FROM a JOIN b ON a.k = b.k", "rows")
    session.push({"a": rows([1, 1, 2], [1, 2, 3]), "b": rows([1, 2, 2], [4, 5, 6])})
    assert session.results("rows").num_rows == 4
    assert session.results("q").to_pylist() == [{"n": 4, "x": 9, "y": 19}]


def test_text_keys_are_folded_too(sessions: Sessions) -> None:
    session = sessions.open(max_pairs_per_batch=500)
    query = session.create_query("SELECT a.g, COUNT(*) AS n FROM a JOIN b ON a.g = b.g GROUP BY a.g", "q")
    names = ["x", "y"] * 50
    session.push({"a": rows([1] * 100, names=names), "b": rows([1] * 100, names=names)})
    assert query.status.error is None
    assert sorted(session.results("q").to_pylist(), key=str) == [{"g": "x", "n": 2500}, {"g": "y", "n": 2500}]


def test_explain_tells_what_is_folded_and_why_not(sessions: Sessions) -> None:
    session = sessions.open()
    folded = session.create_query("SELECT a.g, COUNT(*) FROM a JOIN b ON a.k = b.k GROUP BY a.g", "folded")
    built = session.create_query("SELECT SUM(a.v * b.v) FROM a JOIN b ON a.k = b.k", "built")
    plan = explain_plan(session.engine)
    assert "joined rows are not built (factorized: stored rows are folded)" in plan
    assert "joined rows are not built (factorized: probing rows are folded)" in plan
    paths = [path["folded"] for path in explain_query(session.engine, folded.id, "json")["paths"]]
    assert paths == ["stored rows", "probing rows"]
    text = explain_query(session.engine, built.id)
    assert text.count("joined rows are built, as a.v * b.v is made of both sides") == 2
    assert "joined rows" not in explain_plan(sessions.open(factorize=False).engine)


@pytest.mark.parametrize("kind", ["LEFT", "RIGHT", "FULL"])
def test_outer_joins_fold_their_matched_rows(sessions: Sessions, kind: str) -> None:
    condition = "a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL 1 SECOND AND a.ts + INTERVAL 1 SECOND"
    asked = "SELECT a.k, COUNT(*) AS n, COUNT(b.v) AS m, SUM(b.v) AS x"
    sql = f"{asked} FROM a {kind} JOIN b ON {condition} GROUP BY a.k"
    answers = []
    for factorize in (True, False):
        session = sessions.open(factorize=factorize)
        session.create_query(sql, "q")
        session.push({"a": rows([1, 1, 2, 4], [1, 2, 3, 4]), "b": rows([1, 2, 2, 3], [5, None, 7, 8])})
        session.push({"a": rows([1, 5]), "b": rows([1, 3])})
        late = pa.table({"k": [9], "g": ["g"], "v": [0], "ts": pa.array([10**12], SCHEMA.field("ts").type)}, SCHEMA)
        for _ in range(2):
            session.push({"a": late, "b": late})
        answers.append(sorted(session.results("q").to_pylist(), key=str))
        assert ("factorized" in explain_plan(session.engine)) == factorize
    assert answers[0] == answers[1]
    assert {"k": 1, "n": 6, "m": 6, "x": 18} in answers[0]
    assert any(row["k"] is None for row in answers[0]) == (kind != "LEFT")
