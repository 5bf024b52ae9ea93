"""What Dovetail does not run is refused by name, place and alternative."""

from __future__ import annotations

import pytest

from dovetail.core.errors import CrossProduct, SqlError, SqlSyntaxError, UnsupportedSql
from dovetail.frontend.compile_sql import compile_sql

JOIN = "FROM a JOIN b ON a.k = b.k"

RANGE = "[Range 10 seconds, Slide 5 seconds]"

REFUSALS = [
    (f"SELECT a.x FROM a {RANGE}, b WHERE a.k = b.k", "different windows in brackets, or without", "FROM a [Range"),
    (f"SELECT a.x FROM a {RANGE}, b [Range 9 seconds, Slide 5 seconds] WHERE a.k = b.k", "different windows", "FROM a"),
    (f"SELECT a.x FROM a {RANGE} LEFT JOIN b {RANGE} ON a.k = b.k", "an outer, semi or anti join", "a.w = b.w in ON"),
    (f"SELECT a.x FROM (SELECT * FROM a {RANGE}) AS a", "a window in brackets inside a subquery", "outermost FROM"),
    (f"SELECT u.k FROM untimed {RANGE} AS u", "the stream has no event time", "event_time"),
    ("SELECT a.x FROM a [Range 10 seconds]", "that is not [Range r, Slide s]", "[Range 10 seconds, Slide 5 seconds]"),
    ("SELECT a.x FROM a [Range 5 seconds, Slide 9 seconds]", "slide must be positive and at most its size", "window("),
    (f"SELECT a.x {JOIN} HAVING a.x > 1", "a.x is neither grouped nor inside an aggregate", "MAX(a.x)"),
    (f"SELECT a.x {JOIN} ORDER BY a.x", "ORDER BY is not supported", "sort query.results()"),
    (f"SELECT a.x {JOIN} SORT BY a.x", "SORT BY is not supported", "sort query.results()"),
    (f"SELECT a.x {JOIN} CLUSTER BY a.x", "CLUSTER BY is not supported", "places rows itself"),
    (f"SELECT a.x {JOIN} DISTRIBUTE BY a.x", "DISTRIBUTE BY is not supported", "places rows itself"),
    (f"SELECT a.x {JOIN} LIMIT 5", "LIMIT is not supported", "limit query.results()"),
    (f"SELECT a.x {JOIN} OFFSET 5", "OFFSET is not supported", "query.results()"),
    (f"SELECT a.x {JOIN} QUALIFY a.x = 1", "QUALIFY is not supported", "WHERE"),
    (f"SELECT a.x {JOIN} WINDOW w AS (PARTITION BY a.x)", "WINDOW is not supported", "derived table"),
    (f"SELECT a.x {JOIN} UNION ALL SELECT 1", "UNION is not supported", "one query per SELECT"),
    (f"SELECT a.x {JOIN} EXCEPT SELECT 1", "EXCEPT is not supported", "one query per SELECT"),
    (f"SELECT a.x {JOIN} INTERSECT SELECT 1", "INTERSECT is not supported", "JOIN"),
    (f"WITH z AS (SELECT * FROM a) SELECT b.x {JOIN}", "WITH is not supported", "derived table"),
    (f"SELECT /*+ BROADCAST(a) */ a.x {JOIN}", "a hint is not supported", "join order"),
    ("SELECT a.x FROM a LEFT JOIN b ON a.k = b.k", "when a row of a has no partner", "b.ts <= a.ts + INTERVAL"),
    ("SELECT a.x FROM a RIGHT OUTER JOIN b ON a.k = b.k", "when a row of b has no partner", "a.ts <= b.ts"),
    ("SELECT a.x FROM a FULL JOIN b ON a.k = b.k AND a.ts < b.ts", "when a row of a has no partner", "b.ts <= a.ts"),
    ("SELECT a.x FROM a LEFT ANTI JOIN b ON a.k = b.k", "when a row of a has no partner", "WITHIN 10 SECONDS"),
    ("SELECT a.x FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)", "how much later", "WITHIN 10 SECONDS"),
    (
        ("SELECT count(*) AS n FROM a LEFT JOIN (SELECT k, ts, window(ts, '4 seconds') AS w FROM b) b "
        "ON a.k = b.k AND a.ts = b.ts GROUP BY b.w"),
        "GROUP BY a window of b, which is NULL",
        "other relation",
    ),
    ("SELECT a.x FROM a LEFT JOIN untimed u ON a.k = u.k", "when a row of a has no partner", "an event time"),
    ("SELECT a.x FROM a RIGHT SEMI JOIN b ON a.k = b.k", "RIGHT SEMI JOIN is not supported", "swap the relations"),
    ("SELECT a.x FROM a FULL JOIN b USING (k)", "USING in a full outer join", "coalesce(a.key, b.key)"),
    (f"SELECT a.x {JOIN} LEFT JOIN c ON c.k = a.k", "a left outer join in a query of more than two", "of their own"),
    ("SELECT a.x FROM a LEFT SEMI JOIN b ON a.k = b.k JOIN c ON c.k = a.k", "more than two relations", "of their own"),
    ("SELECT a.x FROM a WHERE a.x NOT IN (SELECT x FROM b)", "NOT IN with a subquery", "NOT EXISTS"),
    ("SELECT a.x FROM a WHERE NOT (a.x IN (SELECT x FROM b))", "NOT IN with a subquery", "NOT EXISTS"),
    ("SELECT a.x FROM a WHERE a.x IN (SELECT x, k FROM b)", "IN with 2 columns", "one column"),
    ("SELECT a.x FROM a WHERE EXISTS (SELECT 1 FROM b JOIN c ON b.k = c.k)", "reads one stream", "SELECT 1 FROM"),
    ("SELECT a.x FROM a WHERE a.k = 1 OR EXISTS (SELECT 1 FROM b)", "EXISTS in a larger expression", "AND"),
    ("SELECT a.x FROM a WHERE a.k = 1 OR a.x IN (SELECT x FROM b)", "IN with a subquery in a larger", "AND"),
    ("SELECT a.x FROM a NATURAL JOIN b", "NATURAL JOIN is not supported", "USING"),
    ("SELECT a.x FROM (a JOIN c ON a.k = c.k) JOIN b ON a.k = b.k", "a join in parentheses", "one after another"),
    ("SELECT a.x FROM a TABLESAMPLE (10 PERCENT) JOIN b ON a.k = b.k", "TABLESAMPLE", "key % 10"),
    ("SELECT a.x FROM a PIVOT (sum(x) FOR k IN (1)) JOIN b ON a.k = b.k", "PIVOT", "query.results()"),
    ("SELECT a.x FROM a LATERAL VIEW explode(s) t AS y JOIN b ON a.k = b.k", "LATERAL VIEW", "explode the array"),
    ("SELECT a.x FROM a, LATERAL (SELECT 1) t WHERE a.k = 1", "LATERAL is not supported", "create_stream"),
    ("SELECT a.x FROM a TIMESTAMP AS OF '2020-01-01' JOIN b ON a.k = b.k", "time travel", "no versions"),
    ("SELECT a.x FROM range(10) a JOIN b ON a.id = b.k", "a table function", "register the rows"),
    ("SELECT a.x FROM VALUES (1) AS a(x) JOIN b ON a.x = b.k", "VALUES", "register the rows"),
    ("SELECT a.x FROM db.a JOIN b ON a.k = b.k", "a database name", "the stream's name alone"),
    ("SELECT q.x FROM a q(x, y) JOIN b ON q.x = b.k", "a column list after an alias", "AS inside a derived table"),
    (f"SELECT a.x {JOIN} WHERE a.x IN (SELECT x FROM c)", "a left semi join in a query", "of their own"),
    (f"SELECT a.x {JOIN} WHERE EXISTS (SELECT 1 FROM c)", "a left semi join in a query", "of their own"),
    (f"SELECT (SELECT max(x) FROM c) AS m {JOIN}", "a subquery in an expression", "join the subquery"),
    (f"SELECT row_number() OVER (ORDER BY a.x) AS n {JOIN}", "window function (OVER)", "with itself"),
    (f"SELECT stddev(a.x) AS n {JOIN}", "stddev() is not supported", "aggregate query.results()"),
    (f"SELECT count_if(a.ok) AS n {JOIN}", "count_if() is not supported", "SUM(CASE WHEN"),
    (f"SELECT a.x {JOIN} WHERE a.dt = current_date", "CURRENT_DATE is not supported", "rows alone"),
    (f"SELECT a.x {JOIN} WHERE a.ts < now()", "now() is not supported", "rows alone"),
    (f"SELECT rand() AS r {JOIN}", "rand() is not supported", "rows alone"),
    (f"SELECT reflect('java.lang.System', 'exit') AS r {JOIN}", "reflect() is not supported", "create_stream"),
    (f"SELECT a.s[0] AS r {JOIN}", "[ ] access", "extract the element"),
    (f"SELECT a.x & 1 AS r {JOIN}", "& is not supported", "bits"),
    (f"SELECT a.x {JOIN} WHERE (a.x, a.k) IN ((1, 2))", "a list of values", "one by one"),
    (f"SELECT a.x {JOIN} WHERE a.x = :p", "a parameter", "the value itself"),
    (f"SELECT a.x {JOIN} WHERE a.s ILIKE 'x'", "ILIKE is not supported", "lower(x) LIKE"),
    (f"SELECT a.x {JOIN} WHERE a.s LIKE ANY ('x')", "ANY is not supported", "OR"),
    (f"SELECT a.x {JOIN} WHERE a.s LIKE b.s", "pattern that is no constant", "write the pattern"),
    (f"SELECT a.x {JOIN} WHERE a.s LIKE 'a/b' ESCAPE '/'", "bad escape", "/%"),
    (f"SELECT a.x {JOIN} WHERE a.s RLIKE '(?i)x'", "group that starts with (?", "LIKE"),
    (f"SELECT try_cast(a.s AS INT) AS r {JOIN}", "TRY_CAST is not supported", "CASE WHEN"),
    (f"SELECT * EXCEPT (x) {JOIN}", "* EXCEPT is not supported", "list the columns"),
    (f"SELECT a.x {JOIN} |> WHERE x > 1", "|> is not supported", "one SELECT"),
    (f"SELECT a.x {JOIN} WHERE a.x = 1 = true", "without parentheses", "parentheses"),
    (f"SELECT a.x {JOIN} WHERE a.x = 1 IS NULL", "without parentheses", "parentheses"),
    (f"SELECT a.x {JOIN} WHERE a.ok <=> a.x < 3", "without parentheses", "parentheses"),
    (f"SELECT 'a' 'b' AS r {JOIN}", "string literals side by side", "||"),
    (f"SELECT a.x {JOIN} WHERE a.ts + INTERVAL 1 MONTH > b.ts", "an interval of 1 MONTH", "days"),
    (f"SELECT a.x {JOIN} WHERE a.ts > b.ts WITHIN 5 PARSECS", "PARSECS", "10 SECONDS"),
    (f"SELECT a.x {JOIN} WITHIN 5 SECONDS WHERE a.x > 1", "WITHIN does not go here", "very end"),
    ("SELECT a.x FROM (SELECT * FROM a WITHIN 5 SECONDS) q JOIN b ON q.k = b.k", "WITHIN inside", "alias"),
    ("SELECT q.x FROM (SELECT * FROM a JOIN c ON a.k = c.k) q JOIN b ON q.k = b.k", "one stream", "outer FROM"),
    ("SELECT q.x FROM (SELECT DISTINCT x, k FROM a) q JOIN b ON q.k = b.k", "DISTINCT here", "outermost SELECT"),
    ("SELECT q.x FROM (SELECT * FROM a LIMIT 3) q JOIN b ON q.k = b.k", "LIMIT", "query.results()"),
    ("SELECT b.x FROM (SELECT * FROM a) JOIN b ON b.k = 1", "needs an alias", "AS name"),
    ("SELECT 1", "without FROM", "FROM a"),
    ("SELECT a.x FROM a WITHIN 5 SECONDS", "WITHIN over one relation", "leave it out"),
    ("SELECT a.x FROM a WHERE window(a.ts, '1 second').start > a.ts", "a field of an expression", "extract"),
    (f"SELECT a.x + b.d + round(a.d, 2) {JOIN}", "without a name", "AS name"),
    (f"SELECT a.dt + 1 {JOIN}", "without a name", "AS name"),
    (f"SELECT b.ts - a.ts AS gap {JOIN}", "type interval", "unix_micros"),
    (f"SELECT NULL AS nothing {JOIN}", "type null", "CAST(NULL AS INT)"),
    (f"SELECT power(a.d, 1.7) AS p {JOIN}", "last digit", "products"),
    (f"SELECT window(a.ts, '1 second') AS w {JOIN}", "window() here", "derived table"),
    ("SELECT p.k FROM (SELECT k, window(ts + INTERVAL 1 DAY, '1 day') AS w FROM a) p JOIN b ON p.k = b.k",
     "window() over an expression", "column of the stream"),
    ("SELECT p.k FROM (SELECT k, window(ts, '1 second', '2 seconds') AS w FROM a) p JOIN b ON p.k = b.k",
     "slide", "window(ts, size"),
    ("SELECT p.k FROM (SELECT k, window(ts, '1 day') AS w, window(ts, '2 days') AS v FROM a) p JOIN b ON p.k = b.k",
     "second window()", "one window()"),
    ("INSERT INTO a SELECT 1", "INSERT is not supported", "one SELECT"),
    ("DROP TABLE a", "DROP is not supported", "one SELECT"),
    ("EXPLAIN SELECT 1", "EXPLAIN is not supported", "one SELECT"),
    ("SET x = 1", "SET is not supported", "one SELECT"),
    ("ADD JAR 'x'", "ADD is not supported", "one SELECT"),
    (f"SELECT a.x {JOIN}; SELECT b.x {JOIN}", "more than one statement", "one SELECT"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "what", "hint"), REFUSALS)
def test_refusal_names_what_where_and_the_alternative(streams, text, what, hint):
    with pytest.raises(SqlError) as caught:
        compile_sql(text, streams)
    assert what.lower() in caught.value.what.lower()
    assert caught.value.where.startswith("line 1, column ")
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("SELECT a.x\nFROM a\nJOIN b ON a.k = b.k\nLIMIT 5", "line 4, column 7"),
        ("SELECT a.x,\n       stddev(a.x) AS n\nFROM a JOIN b ON a.k = b.k", "line 2, column 8"),
        ("SELECT a.x\nFROM a LEFT JOIN b ON a.k = b.k", "line 2, column 18"),
        ("SELECT a.x\n  FROM a JOIN b ON a.k = b.k\n WHERE a.x > 1\n   AND a.s ILIKE 'x'", "line 4, column 8"),
    ],
)
def test_refusal_points_at_the_line_and_column(streams, text, where):
    with pytest.raises(UnsupportedSql) as caught:
        compile_sql(text, streams)
    assert caught.value.where == where


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("SELEC a.x FROM a", "line 1, column "),
        ("SELECT a.x FROM a JOIN\nb ON (a.k = b.k", "line 2, column "),
        ("SELECT 'open FROM a", "line 1, column 1"),
        ("", "line 1, column 1"),
        ("SELECT a.x FROM a JOIN b ON a.k = b.k WHERE", "line 1, column "),
    ],
)
def test_text_that_does_not_parse_is_a_syntax_error_with_a_place(streams, text, where):
    with pytest.raises(SqlSyntaxError) as caught:
        compile_sql(text, streams)
    assert caught.value.where.startswith(where)


def test_six_relations_are_refused(streams):
    text = "SELECT a.x FROM a, b, c, e, g, h WHERE a.k = b.k AND b.k = c.k AND c.k = e.k AND e.k = g.k AND g.k = h.k"
    with pytest.raises(UnsupportedSql, match="a join of 6 relations"):
        compile_sql(text, streams)


@pytest.mark.parametrize(
    "condition",
    ["a.x < b.x", "a.k <=> b.k", "a.k = b.k OR a.x = b.x", "b.ts > a.ts", "ABS(a.k - b.k) <= 2", "a.k + b.k = 3"],
)
def test_any_condition_over_two_relations_joins_them(streams, condition):
    query = compile_sql(f"SELECT a.x FROM a JOIN b ON {condition}", streams)
    assert query.connections == (frozenset("ab"),)
    assert not query.equalities


@pytest.mark.parametrize("condition", ["a.k = 1 AND b.k = 1", "a.x < 5", "TRUE"])
def test_relations_that_no_condition_connects_are_a_cross_product(streams, condition):
    with pytest.raises(CrossProduct, match="no condition connects b with a") as caught:
        compile_sql(f"SELECT a.x FROM a JOIN b ON {condition}", streams)
    assert "a.key = b.key" in caught.value.hint
    assert "a.value < b.value" in caught.value.hint


def test_relations_connected_only_in_pairs_are_a_cross_product(streams):
    text = "SELECT a.x FROM a, b, c, e WHERE a.k = b.k AND c.k < e.k"
    with pytest.raises(CrossProduct, match="no condition connects c, e with a"):
        compile_sql(text, streams)


def test_a_condition_over_three_relations_connects_all_of_them(streams):
    query = compile_sql("SELECT a.x FROM a, b, c WHERE a.k + b.k < c.k", streams)
    assert query.connections == (frozenset("abc"),)
