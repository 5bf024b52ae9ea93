"""A condition may guard a key, a residual or an output from failing, as in batch SQL: also one that is NULL."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dovetail.engine.control.registry import QueryState
from dovetail.testing.local_session import LocalSession

SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.int32())])
ROWS = pa.table({"id": [1, 2, 3], "x": [0, 2, 4]}, schema=SCHEMA)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.id AS a, b.id AS b FROM a JOIN b ON 12 / a.x = 12 / b.x WHERE a.x <> 0 AND b.x <> 0",
        "SELECT a.id AS a, b.id AS b FROM a JOIN b ON a.x = b.x AND 12 / a.x > b.id - 2 WHERE a.x <> 0",
        """SELECT a.id AS a, b.id AS b FROM (SELECT id, 12 / x AS y FROM a WHERE x <> 0) a
           JOIN (SELECT id, 12 / x AS y FROM b WHERE x <> 0) b ON a.y = b.y""",
    ],
)
def test_a_selection_guards_what_would_fail_on_other_rows(tmp_path: Path, sql: str) -> None:
    session = LocalSession(tmp_path / "checkpoint")
    session.create_stream("a", SCHEMA)
    session.create_stream("b", SCHEMA)
    guarded = session.create_query(sql, name="guarded")
    other = session.create_query("SELECT a.id AS a, b.id AS b FROM a JOIN b ON a.x = b.x", name="other")
    session.push({"a": ROWS, "b": ROWS})
    session.push({"a": ROWS})
    assert guarded.status.error is None
    assert sorted(session.results("guarded").to_pylist(), key=str) == [
        {"a": 2, "b": 2},
        {"a": 2, "b": 2},
        {"a": 3, "b": 3},
        {"a": 3, "b": 3},
    ]
    assert session.results("other").num_rows == 6
    assert other.status.error is None


TIMED = pa.schema([("id", pa.int64()), ("k", pa.int64()), ("v", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
NEAR = "b.ts BETWEEN a.ts - INTERVAL 10 SECONDS AND a.ts + INTERVAL 10 SECONDS"
NEIGHBOUR = f"SELECT a.id AS a, b.id AS b, a.v AS av, b.v AS bv FROM a JOIN b ON a.k = b.k AND {NEAR}"
"""It needs what other keys are made of, so buckets have it before anybody asks for those keys."""
OPTIONS: tuple[dict[str, Any], ...] = ({}, {"exchange": "rows"}, {"partitions": 3}, {"keep_intermediates": "always"})


def by_quotient(where: str) -> str:
    return f"SELECT a.id AS a, b.id AS b FROM a JOIN b ON a.k = 10 div b.v AND {NEAR} WHERE {where}"


def rows_of(*rows: tuple[int, int, int]) -> pa.Table:
    start = datetime(2024, 1, 1, tzinfo=UTC)
    return pa.table({name: [(*row, start)[at] for row in rows] for at, name in enumerate(TIMED.names)}, schema=TIMED)


def opened(folder: Path, **options: Any) -> LocalSession:
    session = LocalSession(folder / "checkpoint", **options)
    for name in "ab":
        session.create_stream(name, TIMED, "ts", "1 hour")
    return session


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_who_comes_later_finds_rows_that_another_guard_left_out(tmp_path: Path, options: dict[str, Any]) -> None:
    session = opened(tmp_path, **options)
    session.create_query(NEIGHBOUR, "neighbour")
    session.create_query(by_quotient("b.v <> 0 AND b.k = 1"), "early")
    session.push({"a": rows_of(), "b": rows_of((100, 1, 0), (102, 2, 5))})
    late = session.create_query(by_quotient("b.v <> 0 AND b.k = 2"), "late")
    unguarded = session.create_query(by_quotient("TRUE"), "unguarded")
    session.push({"a": rows_of((1, 2, 1)), "b": rows_of()})
    assert late.status.complete_from == 0
    assert session.results("late").to_pylist() == [{"a": 1, "b": 102}]
    assert late.status.state is QueryState.RUNNING, "nobody else's rows are its own"
    assert unguarded.status.state is QueryState.QUARANTINED
    assert "division by zero" in str(unguarded.status.error)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_guarded_keys_find_all_that_they_should_whoever_comes_when(
    tmp_path: Path, options: dict[str, Any], seed: int
) -> None:
    draw = random.Random(seed)
    session = opened(tmp_path, **options)
    session.create_query(NEIGHBOUR, "neighbour")
    kept: dict[str, list[tuple[int, tuple[int, int, int]]]] = {"a": [], "b": []}
    wanted: dict[str, tuple[int, int]] = {}
    for batch in range(8):
        for _ in range(draw.choice((0, 1, 2))):
            name, most = f"q{len(wanted)}", draw.randint(2, 10)
            session.create_query(by_quotient(f"b.v <> 0 AND b.k < {most}"), name)
            wanted[name] = (most, batch)
        rows = {
            stream: [
                (100 * batch + at, draw.randint(1, 10), draw.choice((0, 1, 2, 5)))
                for at in range(draw.choice((0, 3, 12)))
            ]
            for stream in "ab"
        }
        for stream, own in rows.items():
            kept[stream] += [(batch, row) for row in own]
        session.push({stream: rows_of(*own) for stream, own in rows.items()})
    for name, (most, first_batch) in wanted.items():
        status = session.engine.queries.status(session._query_ids[name])
        assert status.state == QueryState.RUNNING.value
        expected = [
            (a[0], b[0])
            for a_batch, a in kept["a"]
            for b_batch, b in kept["b"]
            if b[2] != 0
            and b[1] < most
            and a[1] == 10 // b[2]
            and min(a_batch, b_batch) >= status.complete_from
            and max(a_batch, b_batch) >= first_batch
        ]
        assert sorted((row["a"], row["b"]) for row in session.results(name).to_pylist()) == sorted(expected)


NULLS = pa.schema([("id", pa.int64()), ("x", pa.int32()), ("y", pa.int32())])
WITH_NULLS = pa.table({"id": [1, 2, 3, 4], "x": [None, 2, None, 4], "y": [0, 1, None, 9]}, schema=NULLS)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM a WHERE x > 0 AND 10 / y > 1",
        "SELECT id FROM a WHERE NOT (x <= 0 OR 10 / y <= 1)",
        "SELECT id FROM a WHERE id > 0 AND (x > 0 AND 10 / y > 1)",
        "SELECT a.id FROM a JOIN b ON a.id = b.id AND a.x > b.x - 1 AND 20 / (a.y + b.y) > 1",
        "SELECT id FROM a GROUP BY id HAVING max(x) > 0 AND 10 / max(y) > 1",
    ],
)
def test_no_conjunct_after_one_that_is_null_is_asked(tmp_path: Path, sql: str) -> None:
    session = LocalSession(tmp_path / "checkpoint")
    session.create_stream("a", NULLS)
    session.create_stream("b", NULLS)
    query = session.create_query(sql, name="q")
    session.push({"a": WITH_NULLS, "b": WITH_NULLS})
    assert query.status.error is None
    assert sorted(session.results("q")["id"].to_pylist()) == [2, 4]
