from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.errors import SqlError, SqlSyntaxError, UnsupportedSql
from dovetail.frontend.compile_sql import compile_sql
from dovetail.frontend.parse.parse_statement import parse_statement
from dovetail.frontend.parse.statement import (
    AlterQuery,
    CreateQuery,
    CreateStream,
    DropQuery,
    ExplainQuery,
    ExplainSelect,
    SelectText,
    ShowQueries,
    ShowStreams,
)
from dovetail.query.types import BIGINT, STRING, TIMESTAMP, SqlType
from tests.support.examples import examples

JOIN = "SELECT a.x FROM a JOIN b ON a.k = b.k"


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        (f"CREATE CONTINUOUS QUERY q AS {JOIN}", CreateQuery("q", SelectText(JOIN))),
        (f"create or replace continuous query q as {JOIN};", CreateQuery("q", SelectText(JOIN), {}, is_replace=True)),
        (
            f"CREATE CONTINUOUS QUERY `my-q` WITH (sink = 'kafka', 'sink.topic' = \"x\", backfill = TRUE) AS {JOIN}",
            CreateQuery("my-q", SelectText(JOIN), {"sink": "kafka", "sink.topic": "x", "backfill": True}),
        ),
        ("DROP CONTINUOUS QUERY q", DropQuery("q")),
        ("DROP CONTINUOUS QUERY IF EXISTS q ; ;", DropQuery("q", if_exists=True)),
        (
            "ALTER CONTINUOUS QUERY q SET (a = 1, b = -2.5, c.d.e = NULL, f = false, `g` = 1e3)",
            AlterQuery("q", {"a": 1, "b": -2.5, "c.d.e": None, "f": False, "g": 1000.0}),
        ),
        ("SHOW QUERIES", ShowQueries()),
        ("show streams -- all of them; really", ShowStreams()),
        ("EXPLAIN q", ExplainQuery("q")),
        (f"EXPLAIN {JOIN}", ExplainSelect(SelectText(JOIN))),
        (
            "CREATE STREAM views (id BIGINT, price DECIMAL(10, 2), `is it` STRING, ts TIMESTAMP) WITH (format = 'x')",
            CreateStream(
                "views",
                (("id", BIGINT), ("price", SqlType("decimal", 10, 2)), ("is it", STRING), ("ts", TIMESTAMP)),
                {"format": "x"},
            ),
        ),
        ("CREATE STREAM ticks WITH (format = 'rate')", CreateStream("ticks", (), {"format": "rate"})),
    ],
)
def test_a_statement_is_read(text, statement):
    assert parse_statement(text) == statement


def test_the_select_is_cut_out_exactly():
    select = "SELECT a.x, ';' AS s -- inside; kept\n  FROM a /* as it is */ JOIN b ON a.k = b.k WITHIN 5 SECONDS"
    text = f"CREATE CONTINUOUS QUERY q AS -- before; left out\n  {select}  /* after */ ;\n-- the end"
    assert parse_statement(text).sql == select


def test_an_error_in_the_select_is_placed_in_the_whole_statement(streams):
    text = "CREATE CONTINUOUS QUERY q -- ü\nAS SELECT a.x\n  FROM a LEFT JOIN b ON a.k = b.k"
    select = parse_statement(text).select
    with pytest.raises(UnsupportedSql) as caught:
        compile_sql(select.placed, streams)
    assert caught.value.where == "line 3, column 20"


REFUSALS = [
    (JOIN, 1, "a SELECT alone", "CREATE CONTINUOUS QUERY name AS SELECT"),
    ("WITH t AS (SELECT 1) SELECT 1", 1, "a SELECT alone", "CREATE CONTINUOUS QUERY name AS SELECT"),
    ("INSERT INTO a VALUES (1)", 1, "INSERT is not supported", "CREATE CONTINUOUS QUERY"),
    ("ADD JAR 'x'", 1, "ADD JAR is not supported", "SHOW or EXPLAIN"),
    ("'x'", 1, "'X' is not supported", "SHOW or EXPLAIN"),
    ("", 1, "empty", "SHOW or EXPLAIN"),
    (" ; -- nothing", 14, "empty", "SHOW or EXPLAIN"),
    ("SHOW QUERIES; DROP CONTINUOUS QUERY q", 15, "more than one statement", "one statement at a time"),
    (f"CREATE CONTINUOUS QUERY q AS {JOIN}; {JOIN}", 69, "more than one statement", "one statement at a time"),
    ("CREATE TABLE t (x INT)", 8, "'TABLE' where CONTINUOUS QUERY or STREAM", "CREATE STREAM name"),
    (f"CREATE QUERY q AS {JOIN}", 8, "'QUERY' where CONTINUOUS QUERY", "CREATE [OR REPLACE] CONTINUOUS QUERY"),
    (f"CREATE CONTINUOUS QUERY AS {JOIN}", 25, "'AS' where the query's name", "CREATE [OR REPLACE]"),
    (f"CREATE CONTINUOUS QUERY 'q' AS {JOIN}", 25, "the query's name is expected", "CREATE [OR REPLACE]"),
    (f"CREATE CONTINUOUS QUERY my-q AS {JOIN}", 27, "'-' where AS or WITH", "CREATE [OR REPLACE]"),
    (f"CREATE CONTINUOUS QUERY q {JOIN}", 27, "'SELECT' where AS or WITH", "AS SELECT"),
    ("CREATE CONTINUOUS QUERY q AS", 29, "the statement ends where SELECT", "AS SELECT"),
    ("CREATE CONTINUOUS QUERY q AS DROP x", 30, "'DROP' where SELECT", "AS SELECT"),
    (f"CREATE CONTINUOUS QUERY q WITH () AS {JOIN}", 33, "')' where an option's key", "key = value"),
    (f"CREATE CONTINUOUS QUERY q WITH (a 1) AS {JOIN}", 35, "'1' where = after a", "key = value"),
    (f"CREATE CONTINUOUS QUERY q WITH (a = b) AS {JOIN}", 37, "a text in quotes, a number", "key = value"),
    (f"CREATE CONTINUOUS QUERY q WITH (a = 1 + 1) AS {JOIN}", 39, "'+' where , or )", "key = value"),
    (f"CREATE CONTINUOUS QUERY q WITH (a = 1, 'a' = 2) AS {JOIN}", 40, "a is given twice", "keep one"),
    ("ALTER CONTINUOUS QUERY q SET (a = " + "9" * 5000 + ")", 35, "number cannot be read", "text in quotes"),
    ("ALTER CONTINUOUS QUERY q SET (a = 1e999)", 35, "number cannot be read", "text in quotes"),
    ("ALTER CONTINUOUS QUERY q RENAME TO r", 26, "'RENAME' where SET", "ALTER CONTINUOUS QUERY name SET"),
    ("DROP STREAM s", 6, "DROP STREAM is not supported", "drop the queries"),
    ("DROP TABLE s", 6, "'TABLE' where CONTINUOUS QUERY", "DROP CONTINUOUS QUERY"),
    ("DROP CONTINUOUS QUERY q CASCADE", 25, "'CASCADE' where the end", "DROP CONTINUOUS QUERY"),
    ("SHOW TABLES", 6, "'TABLES' where QUERIES or STREAMS", "SHOW QUERIES"),
    ("EXPLAIN", 8, "the statement ends", "EXPLAIN name"),
    ("EXPLAIN EXTENDED q", 18, "'q' where the end", "EXPLAIN name"),
    ("CREATE OR REPLACE STREAM s (x INT) WITH (a = 1)", 19, "OR REPLACE of a stream", "another name"),
    ("CREATE STREAM s (x INT)", 24, "the statement ends where WITH", "WITH (key = value"),
    ("CREATE STREAM s () WITH (a = 1)", 18, "')' where a column's name", "column TYPE"),
    ("CREATE STREAM s (x) WITH (a = 1)", 19, "')' where the type of x", "column TYPE"),
    ("CREATE STREAM s (x INT NOT NULL) WITH (a = 1)", 20, "'INT NOT NULL' is no column type", "use boolean"),
    ("CREATE STREAM s (x ARRAY<INT>) WITH (a = 1)", 20, "the type array", "use boolean"),
    ("CREATE STREAM s (x NUMBERS) WITH (a = 1)", 20, "'NUMBERS' is no column type", "use boolean"),
    ("CREATE STREAM s (x " + "ARRAY<" * 3000 + ") WITH (a = 1)", 20, "is no column type", "use boolean"),
    ("CREATE STREAM s (x DECIMAL(99, 2)) WITH (a = 1)", 20, "decimal", "decimal(38,s)"),
    ("CREATE STREAM s (x INT", 23, "the statement ends where , or )", "column TYPE"),
]


@pytest.mark.parametrize(("text", "column", "what", "hint"), REFUSALS, ids=[text[:60] for text, *_ in REFUSALS])
def test_a_refusal_names_what_where_and_what_to_write(text, column, what, hint):
    with pytest.raises(SqlError) as caught:
        parse_statement(text)
    assert what in caught.value.what
    assert caught.value.where == f"line 1, column {column}"
    assert hint in caught.value.hint


def test_text_that_no_tokenizer_reads_is_a_syntax_error():
    with pytest.raises(SqlSyntaxError, match="cannot be read"):
        parse_statement("SHOW 'open")


WORDS = re.split(
    " ",
    "CREATE OR REPLACE CONTINUOUS QUERY STREAM DROP ALTER SHOW EXPLAIN WITH SET AS IF EXISTS SELECT q `q` 'x' \"y\" 1"
    " 1.5 1e9 - TRUE NULL ( ) = , . ; < > INT DECIMAL(10,2) -- /* */ ' ` \\ {{ \n é \x00 X'0' r'x' :p @v QUERIES",
)


def refusal_of(text: str) -> SqlError | None:
    try:
        parse_statement(text)
    except SqlError as error:
        return error
    return None


@examples(3)
@given(st.one_of(st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join), st.text(max_size=60)))
def test_any_text_is_a_statement_or_refused_with_a_place(text):
    refusal = refusal_of(text)
    assert refusal is None or re.fullmatch(r"line \d+, column \d+", refusal.where)
