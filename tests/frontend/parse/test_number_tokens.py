"""Numbers end where Spark's lexer ends them, and no text fails with a foreign error."""

from __future__ import annotations

import pytest

from dovetail.core.errors import SqlError, SqlSyntaxError, UnknownName
from dovetail.frontend import compile_sql as front_door
from dovetail.frontend.compile_sql import compile_sql
from dovetail.frontend.parse import parse_statement as statements
from dovetail.frontend.parse.parse_sql import tokens_of
from dovetail.frontend.parse.parse_statement import parse_statement
from dovetail.query.stream import Stream

PIECES = [
    ("1e3-5", "1e3 - 5"),
    ("1e0+1e0", "1e0 + 1e0"),
    ("x*1.5e1+2", "x * 1.5e1 + 2"),
    ("1e5-5e5-5", "1e5 - 5e5 - 5"),
    ("1e-5", "1e-5"),
    ("1e-3F-2", "1e-3 :: F - 2"),
    ("1e3-5L", "1e3 - 5 :: L"),
    ("1e3bd", "1e3 :: bd"),
    ("1e", "1e"),
    ("1e+x", "1e + x"),
    ("1e5L", "1e5L"),
    ("1D1", "1D1"),
    ("1e-5x", "1e-5 x"),
    ("1e3-5x", "1e3 - 5x"),
    (".5", ".5"),
    ("-.5e1", "- .5e1"),
    (".5BD", ".5 :: BD"),
    ("5.-1", "5. - 1"),
    ("1.5x", "1 . 5x"),
    ("1.5L", "1 . 5 :: L"),
    ("1.5e+x", "1 . 5e + x"),
    ("t.1x", "t . 1x"),
    ("a.5", "a .5"),
    (".5.5", ".5 .5"),
    ("1e5.5", "1e5 .5"),
    ("1..5", "1. .5"),
    ("'1e3-5' `1e0+1`", "1e3-5 1e0+1"),
]

ODD = ["x -> 1BD", "x ->> 0.1e-37BD", "x #> 1BD", "1é", "5x'a'", "1.5e", "1e5.5", "x.5", "1..5"]


@pytest.mark.parametrize(("text", "pieces"), PIECES)
def test_numbers_end_where_spark_ends_them(text: str, pieces: str) -> None:
    assert " ".join(token.text for token in tokens_of(text)) == pieces


def test_a_piece_knows_its_place() -> None:
    text = "x > 1e3-5 + .5L"
    assert " ".join(text[token.start : token.end + 1] for token in tokens_of(text)) == "x > 1e3 - 5 + . 5L 5L 5L"


@pytest.mark.parametrize("item", ["1e", "1e+x", "x + 1e3-5x"])
def test_what_is_no_number_is_a_name(streams: dict[str, Stream], item: str) -> None:
    with pytest.raises(UnknownName, match="unknown column"):
        compile_sql(f"SELECT {item} AS v FROM a", streams)


@pytest.mark.parametrize("item", ODD)
def test_odd_numbers_are_refused_with_their_place(streams: dict[str, Stream], item: str) -> None:
    with pytest.raises(SqlError) as caught:
        compile_sql(f"SELECT {item} AS v FROM a", streams)
    assert (caught.value.where or "").startswith("line 1, column ")
    assert "defect" not in caught.value.what


def test_options_of_statements_read_the_same_numbers() -> None:
    assert parse_statement("ALTER CONTINUOUS QUERY q SET (a = .5, b = 1e3, c = -1.5e-1)").options == {
        "a": 0.5,
        "b": 1000.0,
        "c": -0.15,
    }
    with pytest.raises(SqlSyntaxError, match="there is '-'"):
        parse_statement("ALTER CONTINUOUS QUERY q SET (a = 1e3-5)")


def test_a_defect_refuses_the_text_and_says_so(streams: dict[str, Stream], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_args: object) -> None:
        raise ValueError("no such thing\nsecond line")

    monkeypatch.setattr(front_door, "parse_sql", fails)
    monkeypatch.setattr(statements, "read_tokens", fails)
    for read in (lambda: compile_sql("SELECT 1", streams), lambda: parse_statement("SHOW QUERIES")):
        with pytest.raises(SqlSyntaxError) as caught:
            read()
        assert caught.value.what == "the text cannot be read, by a defect of Dovetail: ValueError: no such thing"
        assert caught.value.where == "line 1, column 1"
        assert "report" in (caught.value.hint or "")
        assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize("item", [". 1.5", "1 + . 1.5"])
def test_a_dot_before_a_number_with_a_dot_makes_no_number(item: str, streams: dict[str, Stream]) -> None:
    with pytest.raises(SqlError, match=r"0\.1\.5 is no number"):
        compile_sql(f"SELECT {item} AS v FROM a", streams)
