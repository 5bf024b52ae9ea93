"""Joins without an equality through the engine: what random cases seldom meet."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from dovetail.testing.local_session import LocalSession

SCHEMA = pa.schema([("x", pa.int64()), ("y", pa.int64())])


def table(*rows: tuple[int | None, int | None]) -> pa.Table:
    return pa.table({"x": [x for x, _ in rows], "y": [y for _, y in rows]}, SCHEMA)


@pytest.fixture
def session(tmp_path: Path) -> LocalSession:
    session = LocalSession(tmp_path, merge_fanout=2)
    session.create_stream("a", SCHEMA)
    session.create_stream("b", SCHEMA)
    return session


def answers(session: LocalSession, name: str) -> Counter[tuple[int, ...]]:
    found = session.results(name)
    return Counter(zip(*(column.to_pylist() for column in found.columns), strict=True))


def test_a_younger_query_asks_more_of_a_shared_step_than_older_buckets_know(session: LocalSession) -> None:
    session.create_query("SELECT a.x, b.x AS bx FROM a JOIN b ON ABS(a.x - b.x) <= 1", name="old")
    session.push({"a": table((1, 1), (5, 5)), "b": table((1, 1))})
    sql = "SELECT a.x, b.x AS bx FROM a JOIN b ON ABS(a.x - b.x) <= 2 AND a.y > b.y"
    session.create_query(sql, name="young")
    session.push({"a": table((2, 9), (3, 0)), "b": table((2, 3), (4, None), (None, 0))})
    session.push({"a": table((2, 4)), "b": table((1, 8))})
    old = Counter({(1, 1): 1, (2, 1): 1, (1, 2): 1, (2, 2): 1, (3, 2): 1, (3, 4): 1, (5, 4): 1})
    old += Counter({(2, 1): 1, (2, 2): 1, (1, 1): 1}) + Counter({(2, 1): 2})
    assert answers(session, "old") == old
    assert answers(session, "young") == Counter({(2, 2): 2, (2, 1): 1})


def test_merged_buckets_keep_their_order(session: LocalSession) -> None:
    session.create_query("SELECT a.x, b.x AS bx FROM a JOIN b ON a.x BETWEEN b.x AND b.x + 1", name="band")
    values = [5, -3, 8, 0, 5, 2, -9, 7]
    for value in values:
        session.push({"a": table((value, 0), (value + 1, 0))})
    session.push({"b": table((5, 0), (-3, 0), (100, 0))})
    expected = Counter(
        (x, low) for value in values for x in (value, value + 1) for low in (5, -3, 100) if low <= x <= low + 1
    )
    assert answers(session, "band") == expected


def test_an_order_that_overflows_stops_only_its_query(session: LocalSession) -> None:
    session.create_query("SELECT a.x, b.x AS bx FROM a JOIN b ON a.x * 2 < b.x", name="doubled")
    session.create_query("SELECT a.x, b.x AS bx FROM a JOIN b ON a.x < b.x", name="plain")
    session.push({"a": table((2**62, 0)), "b": table((2**62 + 1, 0))})
    assert answers(session, "plain") == Counter({(2**62, 2**62 + 1): 1})
    states = {record.name: record.error for record in session.engine.queries.records()}
    assert states["plain"] is None
    assert states["doubled"] is not None


def test_constants_do_not_overflow(session: LocalSession) -> None:
    session.create_query("SELECT a.x, b.x AS bx FROM a JOIN b ON a.x + 5 > b.x", name="shifted")
    session.push({"a": table((2**63 - 1, 0), (-(2**63), 0)), "b": table((2**63 - 1, 0), (-(2**63), 0))})
    largest, least = 2**63 - 1, -(2**63)
    assert answers(session, "shifted") == Counter({(largest, largest): 1, (largest, least): 1, (least, least): 1})


def test_rows_with_a_null_meet_nobody(session: LocalSession) -> None:
    session.create_query("SELECT a.x, b.x AS bx FROM a JOIN b ON a.x <= b.x", name="below")
    session.create_query("SELECT a.x, b.x AS bx FROM a JOIN b ON a.x <= b.x OR a.y = b.y", name="either")
    session.push({"a": table((None, 1), (1, None)), "b": table((None, 1), (1, None))})
    assert answers(session, "below") == Counter({(1, 1): 1})
    assert answers(session, "either") == Counter({(1, 1): 1, (None, None): 1})
