"""A condition may guard a key, a residual or an output from failing, as in batch SQL: also one that is NULL."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

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
