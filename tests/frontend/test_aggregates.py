"""GROUP BY, HAVING, DISTINCT, aggregates and windows: what they are bound to, and what is refused where."""

from __future__ import annotations

import pytest

from dovetail.core.errors import SqlError, UnsupportedSql
from dovetail.frontend.compile_sql import compile_sql

JOIN = "FROM a JOIN b ON a.k = b.k"
NEAR = "AND b.ts BETWEEN a.ts - INTERVAL 1 SECOND AND a.ts + INTERVAL 5 SECONDS"
WINDOWED = "(SELECT k, x, window(ts, '4 seconds') AS w FROM a)"


def outputs(query) -> list[str]:
    return [str(column.expression) for column in query.output]


def test_keys_and_aggregates_speak_of_relations_and_the_rest_of_groups(streams):
    text = f"SELECT a.x + 1, SUM(b.price), SUM(b.price) / COUNT(*) AS mean {JOIN} GROUP BY a.x + 1 HAVING COUNT(*) > 5"
    query = compile_sql(text, streams)
    aggregation = query.aggregation
    assert [str(key) for key in aggregation.keys] == ["add(a.x, 1:int)"]
    assert [str(each) for each in aggregation.aggregates] == ["sum(b.price):decimal(20,2)", "count(*):bigint"]
    assert outputs(query) == ["group.key0", "group.agg0", "div(group.agg0, cast(group.agg1):decimal(20,0))"]
    assert str(aggregation.having) == "gt(group.agg1, 5:bigint)"
    assert query.is_updating


def test_equal_aggregates_and_keys_are_computed_once(streams):
    query = compile_sql(f"SELECT COUNT(*), COUNT(1), count(2) + COUNT(*) AS n {JOIN} GROUP BY a.x, a.x", streams)
    assert len(query.aggregation.aggregates) == 1
    assert len(query.aggregation.keys) == 1


@pytest.mark.parametrize(
    ("group_by", "key"),
    [("1", "add(a.x, 1:int)"), ("y", "add(a.x, 1:int)"), ("a.x", "a.x"), ("A.X", "a.x"), ("a.x, 1", "a.x")],
)
def test_ordinals_and_names_of_select_stand_for_their_expressions(streams, group_by, key):
    query = compile_sql(f"SELECT a.x + 1 AS y {JOIN} GROUP BY {group_by}", streams)
    assert str(query.aggregation.keys[0]) == key


def test_a_column_goes_before_a_name_of_select(streams):
    query = compile_sql("SELECT x + 1 AS big, COUNT(*) FROM a GROUP BY big, x", streams)
    assert [str(key) for key in query.aggregation.keys] == ["a.big", "a.x"]


def test_window_in_group_by(streams):
    text = (
        f"SELECT window.start, window.end, b.k, COUNT(*) {JOIN} {NEAR} GROUP BY window(a.ts, '4 s', '2 s', '1 s'), b.k"
    )
    query = compile_sql(text.replace(" s'", " seconds'"), streams)
    window = query.aggregation.window
    assert (str(window.time), window.size_us, window.slide_us, window.offset_us) == (
        "a.ts",
        4_000_000,
        2_000_000,
        1_000_000,
    )
    assert outputs(query) == ["group.window.start", "group.window.end", "group.key0", "group.agg0"]
    assert query.aggregation.window_relation == "a"
    assert not query.is_updating


@pytest.mark.parametrize("key", ["q.w", "w", "q.w.start", "q.w.end", "w.end"])
def test_window_of_a_derived_table_is_grouped_by_its_start(streams, key):
    query = compile_sql(f"SELECT {key}, COUNT(*) FROM {WINDOWED} q GROUP BY q.k, {key}", streams)
    assert [str(key) for key in query.aggregation.keys] == ["q.k", "q.window.start"]
    assert query.aggregation.window_key == 1
    assert not query.is_updating


def test_a_constant_column_of_a_derived_table_is_a_key(streams):
    query = compile_sql("SELECT c, COUNT(*) FROM (SELECT 7 AS c FROM a) q GROUP BY c", streams)
    assert outputs(query) == ["group.key0", "group.agg0"]


def test_distinct_is_a_group_by_of_all_columns(streams):
    query = compile_sql(f"SELECT DISTINCT a.x, b.s, a.x AS again {JOIN}", streams)
    assert [str(key) for key in query.aggregation.keys] == ["a.x", "b.s"]
    assert outputs(query) == ["group.key0", "group.key1", "group.key0"]
    assert not query.is_updating


def test_distinct_over_windows_that_never_close_needs_no_window(streams):
    query = compile_sql(f"SELECT DISTINCT q.w, b.s FROM {WINDOWED} q JOIN b ON q.k = b.k", streams)
    assert query.aggregation.window_key is None


def test_plain_query_over_one_relation(streams):
    query = compile_sql("SELECT x FROM a WHERE ok", streams)
    assert (len(query.relations), query.aggregation) == (1, None)


REFUSED = [
    ("SELECT x, COUNT(*) FROM a", "x is neither grouped nor inside an aggregate", "line 1, column 8", "MAX(x)"),
    ("SELECT x + 1 + k FROM a GROUP BY x + 1", "k is neither grouped", "line 1, column 16", "GROUP BY"),
    ("SELECT * FROM a GROUP BY k", "* in the SELECT of groups", "line 1, column 8", "name the grouped columns"),
    ("SELECT COUNT(*) FROM a WHERE SUM(x) > 1", "sum() here", "line 1, column 30", "SELECT or HAVING"),
    ("SELECT 1 FROM a JOIN b ON a.k = MAX(b.k)", "max() here", "line 1, column 33", "SELECT or HAVING"),
    ("SELECT SUM(COUNT(*)) FROM a", "count() here", "line 1, column 12", "inside another aggregate"),
    ("SELECT COUNT(*) FROM a GROUP BY MAX(x)", "max() here", "line 1, column 33", "SELECT or HAVING"),
    ("SELECT SUM(DISTINCT x) FROM a", "DISTINCT", "line 1, column 8", "only COUNT takes DISTINCT"),
    ("SELECT SUM(s) FROM a", "sum(): an argument of string", "line 1, column 8", "CAST"),
    ("SELECT MAX(w) FROM (SELECT window(ts, '1 second') AS w FROM a) d", "window", "line 1, column 8", "column"),
    ("SELECT COUNT() FROM a", "count() without an argument", "line 1, column 8", "COUNT(*)"),
    ("SELECT SUM(x) FILTER (WHERE ok) FROM a", "FILTER", "line 1, column 8", "CASE WHEN"),
    ("SELECT SUM(x) OVER (PARTITION BY k) FROM a", "OVER", "line 1, column 8", "join the stream"),
    ("SELECT x FROM a GROUP BY CUBE(x)", "CUBE", "line 1, column 31", "one query per set"),
    ("SELECT x FROM a GROUP BY x WITH ROLLUP", "ROLLUP", "line 1, column 33", "one query per set"),
    ("SELECT x FROM a GROUP BY GROUPING SETS ((x), ())", "GROUPING SETS", "line 1", "one query per set"),
    ("SELECT x FROM a GROUP BY ALL", "GROUP BY ALL", "line 1, column 26", "name the columns"),
    ("SELECT x FROM a GROUP BY 2", "SELECT has 1 columns", "line 1, column 26", "use 1 to 1"),
    ("SELECT COUNT(*) FROM a GROUP BY 'x'", "GROUP BY a constant", "line 1, column 33", "leave it out"),
    ("SELECT *, x FROM a GROUP BY 1", "GROUP BY *", "line 1, column 29", "name the columns"),
    ("SELECT max(x) AS x FROM a GROUP BY k HAVING x > 1", "both a column and a name", "line 1, column 45", "name"),
    ("SELECT x FROM a GROUP BY x ORDER BY x", "ORDER BY", "line 1, column 37", "sort query.results()"),
    ("SELECT DISTINCT COUNT(*) FROM a GROUP BY k", "DISTINCT beside", "line 1", "leave DISTINCT out"),
    ("SELECT DISTINCT ON (k) x FROM a", "DISTINCT ON", "line 1, column 21", "MIN or MAX"),
    ("SELECT 1 FROM (SELECT k, COUNT(*) AS n FROM a GROUP BY k) d", "GROUP BY in a derived", "line 1", "outermost"),
    (
        "SELECT COUNT(*) FROM a GROUP BY window(ts, '1 second'), window(ts, '2 seconds')",
        "second window()",
        "column 57",
        "one",
    ),
    ("SELECT COUNT(*) FROM a GROUP BY window(other_ts, '1 second')", "no event time", "column 33", "use a.ts"),
    ("SELECT COUNT(*) FROM a GROUP BY window(ts, '1 second', '2 seconds')", "slide", "column 33", "window(ts"),
    ("SELECT window(ts, '2 seconds') FROM a GROUP BY window(ts, '1 second')", "not grouped by", "column 8", "same"),
    ("SELECT window.foo FROM a GROUP BY window(ts, '1 second')", "window.foo", "column 8", "window.start"),
    ("SELECT window.start FROM a", "unknown relation 'window'", "column 8", "a"),
    (
        f"SELECT COUNT(*) {JOIN} GROUP BY window(a.ts, '1 second')",
        "how much later b may come",
        "column 53",
        "b.ts <= a.ts",
    ),
    (f"SELECT COUNT(*) FROM {WINDOWED} q JOIN b ON q.k = b.k GROUP BY q.w", "never closes", "line 1", "b.ts <= q.ts"),
    (
        "SELECT COUNT(*) FROM (SELECT window(other_ts, '1 second') AS w FROM a) q GROUP BY w",
        "a window that never closes",
        "line 1",
        "event time",
    ),
    (
        "SELECT COUNT(*) FROM a JOIN untimed u ON a.k = u.k GROUP BY window(a.ts, '1 second')",
        "how much later u may come",
        "line 1, column 61",
        "add one",
    ),
    ("SELECT window FROM wall GROUP BY window(ts, '1 second')", "window", "line 1, column 8", "w.start"),
]


@pytest.mark.parametrize(("text", "what", "where", "hint"), REFUSED)
def test_refusal_names_what_where_and_the_alternative(streams, text, what, where, hint):
    with pytest.raises(SqlError) as caught:
        compile_sql(text, streams)
    assert what in caught.value.what
    assert where in str(caught.value.where)
    assert hint in str(caught.value.hint)


def test_a_window_closes_where_the_bound_is_implied(streams):
    text = f"SELECT COUNT(*) {JOIN} {NEAR} JOIN c ON b.k = c.k AND c.ts <= b.ts GROUP BY window(a.ts, '1 second')"
    assert compile_sql(text, streams).aggregation.window is not None
    with pytest.raises(UnsupportedSql, match="how much later c may come"):
        compile_sql(text.replace("c.ts <= b.ts", "c.ts >= b.ts"), streams)
