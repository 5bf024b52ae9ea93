from __future__ import annotations

import pytest

from dovetail.frontend.compile_sql import compile_sql
from dovetail.query.expression import Column
from dovetail.query.sql_text import column_name, sql_text
from dovetail.query.stream import Stream
from dovetail.query.types import BIGINT, BOOLEAN, DOUBLE, STRING, TIMESTAMP

STREAM = Stream(
    "a", (("x", BIGINT), ("y", BIGINT), ("d", DOUBLE), ("s", STRING), ("f", BOOLEAN), ("ts", TIMESTAMP)), "ts", 0
)


def selection(condition: str) -> str:
    query = compile_sql(f"SELECT a.x FROM a WHERE {condition}", {"a": STREAM})
    return sql_text(query.relations[0].selection, column_name)


@pytest.mark.parametrize(
    "condition",
    [
        "x > 5",
        "x = 1 OR y = 2 AND x <> 3",
        "(x = 1 OR y = 2) AND x <> 3",
        "x - (y - 1) > 2",
        "(x + 1) * y < 10",
        "d <= 0.01",
        "s IN ('card', 'it''s')",
        "s LIKE 'A%' AND s IS NOT NULL",
        "x BETWEEN 1 AND 5",
        "NOT f",
        "-x < y",
        "CASE WHEN x > 1 THEN f ELSE FALSE END",
        "ts > TIMESTAMP '2026-01-02 03:04:05'",
        "ts + INTERVAL 5 SECONDS > TIMESTAMP '2026-01-02 03:04:05'",
        "abs(x) > 1",
        "s <=> NULL",
    ],
)
def test_a_condition_is_told_as_it_was_written(condition: str) -> None:
    assert selection(condition) == condition


def test_whoever_asks_names_the_columns() -> None:
    assert sql_text(Column("m1", "x", BIGINT), lambda column: f"orders.{column.name}") == "orders.x"
    assert sql_text(Column("m1", "x", BIGINT)) == "m1.x"


def test_the_same_text_compiles_to_the_same_condition() -> None:
    texts = ["x > 5 AND (y < 2 OR s = 'b')", "x * (y + 2) - 1 >= 0 AND NOT s LIKE 'x%'"]
    assert [selection(selection(text)) for text in texts] == [selection(text) for text in texts]
