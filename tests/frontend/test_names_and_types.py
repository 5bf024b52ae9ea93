"""Unknown names come with close matches, type mismatches with the CAST to write."""

from __future__ import annotations

import pytest

from dovetail.core.errors import SqlError, TypeMismatch, UnknownName
from dovetail.frontend.compile_sql import compile_sql

JOIN = "FROM a JOIN b ON a.k = b.k"


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ("SELECT a.x FROM aa JOIN b ON aa.k = b.k", "unknown stream 'aa'", "did you mean a?"),
        ("SELECT u.v FROM untimd u JOIN b ON u.k = b.k", "unknown stream 'untimd'", "did you mean untimed?"),
        (f"SELECT a.pricee {JOIN}", "unknown column 'a.pricee'", "did you mean price?"),
        (f"SELECT zzz {JOIN}", "unknown column 'zzz'", "there is: big, d, dt"),
        (f"SELECT z.x {JOIN}", "unknown relation 'z' in 'z.x'", "there is: a, b"),
        (f"SELECT z.* {JOIN}", "unknown relation 'z'", "there is: a, b"),
        (f"SELECT x {JOIN}", "column 'x' is ambiguous", "write a.x or b.x"),
        (f"SELECT uper(a.s) AS u {JOIN}", "unknown function 'uper'", "did you mean upper"),
        ("SELECT c.x FROM a JOIN b ON a.k = c.k JOIN c ON a.k = c.k", "unknown relation 'c'", "there is: a, b"),
        ("SELECT q.x FROM (SELECT k FROM a) q JOIN b ON q.k = b.k", "unknown column 'q.x'", "there is: k"),
        ("SELECT a.x FROM a JOIN b USING (kk)", "unknown column 'kk'", "did you mean k?"),
    ],
)
def test_unknown_name_comes_with_close_matches(streams, text, what, hint):
    with pytest.raises(UnknownName) as caught:
        compile_sql(text, streams)
    assert what in caught.value.what
    assert hint in caught.value.hint
    assert caught.value.where.startswith("line 1, column ")


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ("SELECT a.x FROM a JOIN b ON a.k = b.s", "a comparison of int and string", "CAST(... AS INT)"),
        (f"SELECT a.x {JOIN} WHERE a.s = 5", "a comparison of string and int", "CAST(... AS INT)"),
        (f"SELECT a.x {JOIN} WHERE a.ok = 1", "a comparison of boolean and int", "CAST(... AS BOOLEAN)"),
        (f"SELECT a.x {JOIN} WHERE a.dt = a.k", "a comparison of date and int", "CAST(... AS DATE)"),
        (f"SELECT a.s + 1 AS y {JOIN}", "+ of string and int", "CAST(... AS INT)"),
        (f"SELECT a.x {JOIN} WHERE a.x", "a condition of type int", "CAST(... AS BOOLEAN)"),
        (f"SELECT a.x {JOIN} WHERE a.x AND a.ok", "a condition of type int", "compare it"),
        (f"SELECT a.x {JOIN} WHERE NOT a.s", "a condition of type string", "compare it"),
        (f"SELECT a.x {JOIN} WHERE a.ts > 'soon'", "'soon' is no timestamp", "2024-12-31"),
        (f"SELECT a.x {JOIN} WHERE a.dt = DATE 'x'", "'x' is no date", "2024-12-31"),
        (f"SELECT a.x {JOIN} WHERE a.x IN (1, 'two')", "IN of int and string", "CAST(... AS INT)"),
        (f"SELECT CASE WHEN a.ok THEN 1 ELSE 'x' END AS y {JOIN}", "branches of int and string", "CAST(... AS INT)"),
        (f"SELECT coalesce(a.s, 1) AS y {JOIN}", "arguments of int and string", "CAST(... AS INT)"),
        (f"SELECT CAST(a.d AS STRING) AS y {JOIN}", "CAST of double to string", "decimal"),
        (f"SELECT CAST(a.x AS TIMESTAMP) AS y {JOIN}", "CAST of int to timestamp", "DataFrame"),
        (f"SELECT year(a.x) AS y {JOIN}", "an argument of int", "CAST(... AS DATE)"),
        (f"SELECT hour(a.s) AS y {JOIN}", "an argument of string", "CAST(... AS TIMESTAMP)"),
        (f"SELECT abs(a.s) AS y {JOIN}", "an argument of string", "CAST(... AS DOUBLE)"),
        (f"SELECT upper(a.d) AS y {JOIN}", "an argument of double", "decimal"),
        (f"SELECT substring(a.s, a.big) AS y {JOIN}", "an argument of bigint", "CAST(... AS INT)"),
        (f"SELECT round(a.d, a.x) AS y {JOIN}", "no constant integer", "write the number"),
        (f"SELECT date_trunc('eon', a.ts) AS y {JOIN}", "'eon' is no unit", "hour"),
        (f"SELECT upper() AS y {JOIN}", "0 arguments", "pass 1"),
        (f"SELECT -a.s AS y {JOIN}", "minus a string", "CAST"),
        (f"SELECT a.x {JOIN} WHERE a.x LIKE 'a'", "a pattern match of int and string", "CAST"),
        (f"SELECT 123456789012345678901234567890123456789 AS y {JOIN}", "more than 38 digits", "fewer digits"),
    ],
)
def test_type_mismatch_names_the_cast_to_write(streams, text, what, hint):
    with pytest.raises(TypeMismatch) as caught:
        compile_sql(text, streams)
    assert what in caught.value.what
    assert hint in caught.value.hint
    assert caught.value.where.startswith("line 1, column ")


@pytest.mark.parametrize(
    ("item", "what"),
    [
        ("CAST(a.x AS DECIMAL((12, 3)))", "a decimal takes digits and scale"),
        ("CAST(a.x AS DECIMAL(39, 3))", "no such decimal"),
        ("a.ts + INTERVAL '1 02' DAY TO", "TO"),
    ],
)
def test_damaged_types_and_intervals_are_refused(streams, item, what):
    with pytest.raises(SqlError, match=what):
        compile_sql(f"SELECT a.x FROM a JOIN b ON a.k = b.k WHERE {item}", streams)


def test_two_relations_of_one_name_need_aliases(streams):
    with pytest.raises(SqlError, match="two relations are called 'a'"):
        compile_sql("SELECT a.x FROM a JOIN a ON a.k = a.k", streams)


def test_decimals_that_need_more_than_38_digits_together_are_refused(streams):
    text = f"SELECT a.x {JOIN} WHERE CAST(a.price AS DECIMAL(38, 30)) = CAST(a.price AS DECIMAL(38, 0))"
    with pytest.raises(TypeMismatch, match=r"decimal\(38,30\) and decimal\(38,0\)"):
        compile_sql(text, streams)


def test_within_needs_event_times(streams):
    with pytest.raises(SqlError, match="stream 'untimed' has none") as caught:
        compile_sql("SELECT a.x FROM a JOIN untimed u ON a.k = u.k WITHIN 5 SECONDS", streams)
    assert "event_time=" in caught.value.hint
