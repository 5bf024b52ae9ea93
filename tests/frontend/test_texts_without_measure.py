"""Texts that nobody writes by hand: each is refused with its place and what to do, before it costs anybody time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dovetail.core.errors import SqlError, SqlSyntaxError, UnsupportedSql
from dovetail.frontend import merge_branches as merging
from dovetail.frontend.bind.relations import MAX_PARTS
from dovetail.frontend.compile_sql import compile_sql
from dovetail.frontend.merge_branches import merge_branches
from dovetail.frontend.parse.parse_sql import MAX_CHARACTERS, MAX_WORDS
from dovetail.query.expression import Literal
from dovetail.query.join_query import JoinQuery
from dovetail.query.stream import Stream
from dovetail.query.types import BIGINT, INT, STRING, TIMESTAMP

STREAMS = {"a": Stream("a", (("k", BIGINT), ("v", INT), ("s", STRING), ("ts", TIMESTAMP)), "ts", 0)}


def _doubling(levels: int) -> str:
    text = "SELECT v AS x, ts FROM a"
    for level in range(levels):
        text = f"SELECT x + x AS x, ts FROM ({text}) AS d{level}"
    return text


@pytest.mark.parametrize(
    "text",
    [
        *(
            "SELECT k FROM a WHERE",
            "SELECT k FROM",
            "SELECT k k k FROM a",
            "SELECT k FROM a WHERE s = 'x",
            "SELECT %s FROM a",
        ),
        *(
            "SELECT k FROM a /* never",
            "SELECT FROM a",
            "SELECT select FROM a",
            f"SELECT {'(' * 3_000}k{')' * 3_000} FROM a",
        ),
        f"SELECT k FROM a {' ' * MAX_CHARACTERS}",
        f"SELECT k FROM a WHERE v IN ({', '.join(['1'] * MAX_WORDS)})",
        "SELECT k FROM a WHERE s = '\ud800'",
        _doubling(40),
    ],
)
def test_what_is_refused_says_where_and_what_to_do(text: str) -> None:
    with pytest.raises(SqlError) as refused:
        compile_sql(text, STREAMS)
    assert refused.value.where
    assert refused.value.hint
    assert "sqlglot" not in refused.value.what


def test_half_of_a_character_is_named_with_its_place() -> None:
    with pytest.raises(SqlSyntaxError, match="half of a character") as refused:
        compile_sql("SELECT k FROM a\nWHERE s = '\udfff'", STREAMS)
    assert refused.value.where == "line 2, column 12"


def test_columns_that_double_are_refused_while_they_are_small() -> None:
    compile_sql(_doubling(8), STREAMS)
    with pytest.raises(UnsupportedSql, match=f"more than {MAX_PARTS:,} parts"):
        compile_sql(_doubling(20), STREAMS)


def test_an_interval_may_be_below_zero() -> None:
    def join(bounds: str) -> JoinQuery:
        text = f"SELECT x.k FROM a AS x JOIN a AS y ON x.k = y.k AND y.ts BETWEEN {bounds}"
        return replace(compile_sql(text, STREAMS), sql="")

    below = join("x.ts + INTERVAL -10 SECONDS AND x.ts - INTERVAL -10 SECONDS")
    assert below == join("x.ts - INTERVAL 10 SECONDS AND x.ts + INTERVAL 10 SECONDS")


def test_texts_of_a_list_are_not_compared_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of 5,000 texts took 25 million comparisons."""
    compared = 0

    class Counting(Literal):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return self is other

        __hash__ = Literal.__hash__

    monkeypatch.setattr(merging, "cast_to", lambda expression, *_: expression)
    values = [Counting(f"x{i}", STRING) for i in range(50)]
    assert merge_branches(list(values), "UTC") is not None
    assert compared < 10 * len(values)


def test_a_row_is_kept_in_a_thousand_windows_and_no_more() -> None:
    text = "SELECT x.k FROM (SELECT *, window(ts, '1 day', '{}') AS w FROM a) AS x JOIN a AS y ON x.k = y.k"
    compile_sql(text.format("90 seconds"), STREAMS)
    with pytest.raises(UnsupportedSql, match="86,400 windows") as refused:
        compile_sql(text.format("1 second"), STREAMS)
    assert refused.value.where
    assert "slide by at least" in str(refused.value.hint)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SELECT k FROM a WHERE NULL", "a filter that is NULL"),
        ("SELECT a.k FROM a JOIN a AS b ON NULL", "a filter that is NULL"),
        ("SELECT k, COUNT(*) AS n FROM a GROUP BY k HAVING NULL", "a filter that is NULL"),
        ("SELECT 1e-99999999999 AS x FROM a", "exponent beyond"),
        ("SELECT k\x1cFROM a", r"'\\x1c' is no white space"),
        ("SELECT k FROM a\x85WHERE v = 1", r"'\\x85' is no white space"),
    ],
)
def test_what_spark_does_not_read_is_refused(text: str, told: str) -> None:
    with pytest.raises(SqlError, match=told) as refused:
        compile_sql(text, STREAMS)
    assert refused.value.where
    assert refused.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k FROM a WHERE NULL AND v = 1",
        "SELECT k FROM a WHERE CAST(NULL AS BOOLEAN)",
        "SELECT 1e-300 AS x FROM a",
        "SELECT k FROM a WHERE s = '\x1c'",
        "SELECT k /* \x1f */ FROM a",
        "SELECT\x0bk\x0cFROM a",
    ],
)
def test_what_is_close_to_it_is_read(text: str) -> None:
    assert compile_sql(text, STREAMS).output
