from __future__ import annotations

import pytest

from dovetail.core.errors import SqlError
from dovetail.frontend.compile_sql import compile_sql
from dovetail.kernels.evaluate.try_out import try_out
from dovetail.query.stream import Stream
from dovetail.query.types import BIGINT, STRING, TIMESTAMP

STREAMS = {"a": Stream("a", (("k", BIGINT), ("s", STRING), ("ts", TIMESTAMP)), "ts", 0)}


def _compile(condition: str) -> None:
    compile_sql(f"SELECT k FROM a WHERE {condition}", STREAMS, try_out=lambda each: try_out(each, "UTC"))


@pytest.mark.parametrize(
    ("condition", "place"),
    [
        ("k = 1 AND 1 / 0 = 1", 33),
        ("k = 1 / 0", 27),
        ("k = 1 AND CAST('x' AS INT) = 1", 38),
        ("s RLIKE '('", 23),
        ("s RLIKE '[z-a]'", 23),
        ("s RLIKE '*a'", 23),
        ("s RLIKE 'a{2000}'", 23),
        ("CASE WHEN k > 1 THEN s RLIKE '(' ELSE TRUE END", 44),
        ("length(repeat('x', 1000000000)) > 1", 30),
        ("date_add(DATE '2024-01-01', 2147483647) > DATE '2024-01-01'", 23),
    ],
)
def test_what_can_only_fail_is_refused_where_it_stands(condition: str, place: int) -> None:
    with pytest.raises(SqlError, match="can only fail") as raised:
        _compile(condition)
    assert raised.value.where == f"line 1, column {place}"
    assert raised.value.hint


@pytest.mark.parametrize(
    "condition",
    [
        "CASE WHEN k > 100 THEN 1 / 0 ELSE 1 END = 1",
        "coalesce(k, 1 / 0) = 1",
        "coalesce(1, 1 / 0) = 1",
        "k / 0 = 1",
        "NULL = NULL",
        "NULL <=> NULL",
        "NULL IN (NULL)",
        "NULL AND k = 1",
        "NULL BETWEEN NULL AND NULL",
        "s RLIKE 'a{1000}'",
        "length(rpad(s, 300000000, 'x')) > 1",
    ],
)
def test_what_some_row_may_answer_is_accepted(condition: str) -> None:
    _compile(condition)


@pytest.mark.parametrize("duration", ["99999999999999 DAYS", "'99999999999999' DAY", "9e300 SECONDS", "4000000 DAYS"])
def test_a_duration_longer_than_all_of_time_is_refused(duration: str) -> None:
    with pytest.raises(SqlError):
        _compile(f"ts > TIMESTAMP '2024-01-01 00:00:00' - INTERVAL {duration}")
