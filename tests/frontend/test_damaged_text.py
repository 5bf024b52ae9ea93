"""Any text either compiles or is refused with an error that users can read."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.errors import SqlError
from dovetail.frontend.compile_sql import compile_sql
from dovetail.query.stream import Stream
from dovetail.query.types import BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, SqlType
from tests.support.examples import examples

COLUMNS = (
    ("k", INT),
    ("x", INT),
    ("d", DOUBLE),
    ("s", STRING),
    ("price", SqlType("decimal", 10, 2)),
    ("ok", BOOLEAN),
    ("dt", DATE),
    ("ts", TIMESTAMP),
)
STREAMS = {name: Stream(name, COLUMNS, "ts") for name in ("a", "b", "c")}
TEXTS = [
    "SELECT a.x, b.* FROM a WITHIN 5 SECONDS JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL 5 SECONDS AND a.ts",
    "SELECT CASE WHEN a.x > 1.5 THEN upper(a.s) ELSE 'z' END AS y FROM a, b WHERE a.k = b.k AND NOT a.s LIKE 'a%'",
    "SELECT p.w.start FROM (SELECT k, window(ts, '4 seconds') AS w FROM a WHERE ok) p JOIN b ON p.k = b.k WITHIN 1 DAY",
    "SELECT CAST(a.price AS DECIMAL(12, 3)) c, -a.x % 7 + 1e2 AS e FROM a JOIN b USING (k) WHERE a.x IN (1, NULL, 3)",
    "SELECT a.dt + 1 AS t, a.ts - b.ts < INTERVAL '1 02:03:04' DAY TO SECOND AS q FROM a JOIN b ON a.k <=> b.k",
    "SELECT a.x + 1 AS y, COUNT(*), SUM(b.price) / MAX(b.x) AS r FROM a JOIN b ON a.k = b.k GROUP BY y HAVING r > 1.5",
    "SELECT DISTINCT window.start, COUNT(DISTINCT x, s) FROM a WHERE ok GROUP BY window(ts, '4 seconds'), k",
]
WORDS = re.compile(r"'[^']*'|\w+|\S")
SPARE = [
    "(",
    ")",
    ",",
    ".",
    "*",
    "'",
    "NULL",
    "SELECT",
    "FROM",
    "WITHIN",
    "INTERVAL",
    "NOT",
    "AND",
    "1",
    "''",
    "window",
]
SPARE += [
    "AS",
    "JOIN",
    "ON",
    "::",
    "[",
    "IS",
    "BETWEEN",
    "LIKE",
    "`",
    "5 SECONDS",
    "OVER ()",
    "WHERE",
    "GROUP BY",
    "HAVING",
    "SUM(",
    "DISTINCT",
    "--",
    "/*",
    ";",
    "1e3-5",
    "1e0+1e0",
    "1e",
    ".5",
    "1BD",
    "->",
    "1e-5x",
]


@st.composite
def damaged_texts(draw: st.DrawFn) -> str:
    words = WORDS.findall(draw(st.sampled_from(TEXTS)))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(words) - 1))
        change = draw(st.sampled_from(["drop", "repeat", "insert", "swap"]))
        if change == "drop" and len(words) > 1:
            del words[place]
        elif change == "repeat":
            words.insert(place, words[place])
        elif change == "insert":
            words.insert(place, draw(st.sampled_from(SPARE)))
        else:
            other = draw(st.integers(0, len(words) - 1))
            words[place], words[other] = words[other], words[place]
    return draw(st.sampled_from([" ", "\n", ""])).join(words)


def refusal_of(text: str) -> SqlError | None:
    try:
        compile_sql(text, STREAMS)
    except SqlError as error:
        if "defect" in error.what:
            raise
        return error
    return None


@examples(3)
@given(damaged_texts())
def test_damaged_text_compiles_or_is_refused_with_a_place(text):
    refusal = refusal_of(text)
    assert refusal is None or re.fullmatch(r"line \d+, column \d+", refusal.where)


@pytest.mark.parametrize("text", TEXTS[:4])
def test_the_texts_compile_undamaged(text):
    assert 2 <= len(compile_sql(text, STREAMS).relations) <= 5


@pytest.mark.parametrize(
    ("lead", "piece", "end"),
    [
        ("SELECT a.x FROM a JOIN b ON a.k = b.k WHERE a.x = 0", " AND a.x <> 1", ""),
        ("SELECT a.x FROM a JOIN b ON a.k = b.k WHERE a.x = 0", " OR a.x = 1", ""),
        ("SELECT a.x", " + 1", " AS y FROM a JOIN b ON a.k = b.k"),
    ],
)
def test_a_text_that_later_steps_could_not_recurse_into_is_refused(lead, piece, end):
    assert refusal_of(lead + piece * 100 + end) is None
    refusal = refusal_of(lead + piece * 250 + end)
    assert "inside each other" in refusal.what
    assert refusal.where
