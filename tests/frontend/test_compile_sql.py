"""Golden tests: SQL text to the content of its `JoinQuery`."""

from __future__ import annotations

import textwrap
from dataclasses import replace

import pytest

from dovetail.frontend.compile_sql import compile_sql
from dovetail.query.expression import TRUE
from dovetail.query.join_kind import JoinKind
from dovetail.query.join_query import JoinQuery
from dovetail.query.stream import Stream


def described(query: JoinQuery) -> str:
    """The query, one part a line."""
    lines = []
    for relation in query.relations:
        where = "" if relation.selection == TRUE else f" where {relation.selection}"
        window = f" {relation.hop_window}" if relation.hop_window else ""
        lines.append(f"{relation.alias} = {relation.stream}{window}{where}")
    lines += [f"{equality.a_side} = {equality.b_side}" for equality in query.equalities]
    lines += [str(bound) for bound in query.time_bounds]
    lines += [f"residual {residual}" for residual in query.residuals]
    lines += [f"{query.kind.value} join"] if query.kind is not JoinKind.INNER else []
    lines += [f"where {query.where}"] if query.where != TRUE else []
    lines += [f"{column.name}: {column.type} = {column.expression}" for column in query.output]
    return "\n".join(lines)


GOLDEN = {
    "two streams, a selection each": (
        "SELECT a.x, b.s AS name FROM a JOIN b ON a.k = b.k WHERE a.x > 5 AND b.ok",
        """
        a = a where gt(a.x, 5:int)
        b = b where b.ok
        a.k = b.k
        x: int = a.x
        name: string = b.s
        """,
    ),
    "a FROM list is the same as JOIN": (
        "SELECT a.x, b.s AS name FROM a, b WHERE b.ok AND a.k = b.k AND 5 < a.x",
        """
        a = a where gt(a.x, 5:int)
        b = b where b.ok
        a.k = b.k
        x: int = a.x
        name: string = b.s
        """,
    ),
    "a composite key, an expression on a side, coercion": (
        "SELECT a.x FROM a INNER JOIN b ON a.k = b.big AND upper(a.s) = b.s AND a.x + 1 = b.x",
        """
        a = a
        b = b
        cast(a.k):bigint = b.big
        upper(a.s) = b.s
        add(a.x, 1:int) = b.x
        x: int = a.x
        """,
    ),
    "names without regard to case, as written in the output": (
        "SELECT P.X, BIG FROM A p JOIN (SELECT k FROM B) q ON p.K = Q.k",
        """
        p = a
        q = b
        p.k = q.k
        X: int = p.x
        BIG: bigint = p.big
        """,
    ),
    "a self-join with a residual": (
        "SELECT l.x, r.x AS y FROM a l JOIN a r ON l.k = r.k AND l.x < r.x",
        """
        l = a
        r = a
        l.k = r.k
        residual lt(l.x, r.x)
        x: int = l.x
        y: int = r.x
        """,
    ),
    "ON of an outer join says who are partners, WHERE filters what it answers": (
        """SELECT a.x FROM a LEFT JOIN b ON a.k = b.k AND b.ts = a.ts AND a.x > 5 AND b.ok AND TRUE = (1 = 1)
           WHERE a.x < 9 AND b.k IS NULL AND a.x <> b.x""",
        """
        a = a where lt(a.x, 9:int)
        b = b where b.ok
        a.k = b.k
        b.ts = a.ts
        b.time - a.time <= 0us
        a.time - b.time <= 0us
        residual gt(a.x, 5:int)
        residual eq(eq(1:int, 1:int), True:boolean)
        left outer join
        where and(is_null(b.k), ne(a.x, b.x))
        x: int = a.x
        """,
    ),
    "a full join filters nothing before it pads": (
        """SELECT a.x FROM a FULL JOIN (SELECT k, ts, 1 AS one FROM b WHERE ok) b ON a.k = b.k AND a.x > 5
           WHERE a.x < 9 AND b.one = 1 WITHIN 5 SECONDS""",
        """
        a = a
        b = b where b.ok
        a.k = b.k
        b.time - a.time <= 5000000us
        a.time - b.time <= 5000000us
        residual gt(a.x, 5:int)
        full outer join
        where and(lt(a.x, 9:int), eq(case(b.#present, 1:int, NULL:int), 1:int))
        x: int = a.x
        """,
    ),
    "EXISTS is a semi join, and names are those of the subquery first": (
        "SELECT * FROM untimed u WHERE v = 'x' AND EXISTS (SELECT 1 FROM b WHERE k = u.k AND v = s)",
        """
        u = untimed where eq(u.v, 'x':string)
        b = b
        b.k = u.k
        u.v = b.s
        left semi join
        k: int = u.k
        v: string = u.v
        """,
    ),
    "NOT EXISTS is an anti join": (
        "SELECT x FROM a WHERE NOT EXISTS (SELECT b.x FROM b WHERE b.k = a.k AND b.ts <= a.ts AND a.ok AND b.ok)",
        """
        a = a
        b = b where b.ok
        b.k = a.k
        b.time - a.time <= 0us
        residual a.ok
        left anti join
        x: int = a.x
        """,
    ),
    "IN is a semi join": (
        "SELECT x FROM a WHERE big IN (SELECT x FROM b WHERE b.ok)",
        """
        a = a
        b = b where b.ok
        a.big = cast(b.x):bigint
        left semi join
        x: int = a.x
        """,
    ),
    "five relations in a chain": (
        "SELECT a.x FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k JOIN e ON c.x = e.x JOIN g ON e.s = g.s",
        """
        a = a
        b = b
        c = c
        e = e
        g = g
        a.k = b.k
        b.k = c.k
        c.x = e.x
        e.s = g.s
        x: int = a.x
        """,
    ),
    "a band of event times": (
        """SELECT a.x FROM a JOIN b ON a.k = b.k
           AND b.ts BETWEEN a.ts - INTERVAL 5 SECONDS AND a.ts + INTERVAL '3' MINUTE""",
        """
        a = a
        b = b
        a.k = b.k
        a.time - b.time <= 5000000us
        b.time - a.time <= 180000000us
        x: int = a.x
        """,
    ),
    "strict and swapped time conditions": (
        "SELECT a.x FROM a, b WHERE a.k = b.k AND a.ts + INTERVAL '5 seconds' > b.ts AND b.ts >= a.ts",
        """
        a = a
        b = b
        a.k = b.k
        b.time - a.time <= 4999999us
        a.time - b.time <= 0us
        x: int = a.x
        """,
    ),
    "a difference of times is the same condition": (
        "SELECT a.x FROM a, b WHERE a.k = b.k AND b.ts - a.ts < INTERVAL 1 HOUR 30 MINUTES",
        """
        a = a
        b = b
        a.k = b.k
        b.time - a.time <= 5399999999us
        x: int = a.x
        """,
    ),
    "of two bounds of one pair the tighter stays": (
        """SELECT a.x FROM a, b WHERE a.k = b.k
           AND b.ts < a.ts + INTERVAL 9 SECONDS AND b.ts <= a.ts + INTERVAL 2 SECONDS""",
        """
        a = a
        b = b
        a.k = b.k
        b.time - a.time <= 2000000us
        x: int = a.x
        """,
    ),
    "times that are no event times stay a residual": (
        "SELECT a.x FROM a, b WHERE a.k = b.k AND b.other_ts < a.ts",
        """
        a = a
        b = b
        a.k = b.k
        residual lt(b.other_ts, a.ts)
        x: int = a.x
        """,
    ),
    "equal event times are a key and two bounds": (
        "SELECT a.x FROM a JOIN b ON a.ts = b.ts + INTERVAL 1 SECOND",
        """
        a = a
        b = b
        a.ts = time_add(b.ts, 1000000:interval)
        a.time - b.time <= 1000000us
        b.time - a.time <= -1000000us
        x: int = a.x
        """,
    ),
    "WITHIN after a relation bounds the others after it": (
        "SELECT a.x FROM a WITHIN 10 SECONDS JOIN b ON a.k = b.k JOIN c WITHIN '1 minute' ON b.k = c.k",
        """
        a = a
        b = b
        c = c
        a.k = b.k
        b.k = c.k
        b.time - a.time <= 10000000us
        c.time - a.time <= 10000000us
        a.time - c.time <= 60000000us
        b.time - c.time <= 60000000us
        x: int = a.x
        """,
    ),
    "WITHIN at the end bounds all pairs": (
        "SELECT a.x FROM a JOIN b ON a.k = b.k WHERE a.x > 1 WITHIN 10 SECONDS",
        """
        a = a where gt(a.x, 1:int)
        b = b
        a.k = b.k
        b.time - a.time <= 10000000us
        a.time - b.time <= 10000000us
        x: int = a.x
        """,
    ),
    "the word within still names a column": (
        "SELECT q.within FROM (SELECT k, x AS within FROM a) AS q WITHIN 2 SECONDS JOIN b ON q.k = b.k",
        """
        q = a
        b = b
        q.k = b.k
        b.time - q.time <= 2000000us
        within: int = q.x
        """,
    ),
    "derived tables select, filter and compute": (
        """SELECT p.double_x, q.s FROM (SELECT k, x * 2 AS double_x FROM a WHERE x > 0) p
           JOIN (SELECT * FROM (SELECT k AS key, s FROM b WHERE ok) i WHERE s LIKE 'a%') q
           ON p.k = q.key WHERE p.double_x < 10""",
        """
        p = a where and(gt(p.x, 0:int), lt(mul(p.x, 2:int), 10:int))
        q = b where and(q.ok, like(q.s, 'a%':string, '\\\\':string))
        p.k = q.k
        double_x: int = mul(p.x, 2:int)
        s: string = q.s
        """,
    ),
    "hopping windows joined on the window column": (
        """SELECT p.w, p.w.start, q.w.end AS till FROM (SELECT k, window(ts, '4 seconds', '2 seconds') AS w FROM a) p
           JOIN (SELECT k, window(ts, '4 seconds', '2 seconds') AS w FROM b) q ON p.w = q.w AND p.k = q.k""",
        """
        p = a window(ts, 4000000us, 2000000us, 0us) where is_not_null(p.ts)
        q = b window(ts, 4000000us, 2000000us, 0us) where is_not_null(q.ts)
        p.window.start = q.window.start
        p.window.end = q.window.end
        p.k = q.k
        q.time - p.time <= 3999999us
        p.time - q.time <= 3999999us
        w: window = struct(p.window.start, p.window.end)
        start: timestamp = p.window.start
        till: timestamp = q.window.end
        """,
    ),
    "tumbling windows over other times bound nothing": (
        """SELECT p.k FROM (SELECT k, window(other_ts, '1 minute', '1 minute', '15 seconds') w FROM a) p
           JOIN (SELECT window(other_ts, '1 minute', '1 minute', '15 seconds') w FROM b) q ON p.w = q.w""",
        """
        p = a window(other_ts, 60000000us, 60000000us, 15000000us) where is_not_null(p.other_ts)
        q = b window(other_ts, 60000000us, 60000000us, 15000000us) where is_not_null(q.other_ts)
        p.window.start = q.window.start
        p.window.end = q.window.end
        k: int = p.k
        """,
    ),
    "NOT sits at the leaves": (
        "SELECT a.x FROM a JOIN b ON a.k = b.k WHERE NOT (a.x > 1 AND a.d <= 2 OR a.s IS NULL OR contains(a.s, 'z'))",
        """
        a = a where and(and(or(le(a.x, 1:int), gt(a.d, 2.0:double)), is_not_null(a.s)), not(contains(a.s, 'z':string)))
        b = b
        a.k = b.k
        x: int = a.x
        """,
    ),
    "an integer column is compared in its own type": (
        "SELECT a.x FROM a JOIN b ON a.k = b.k WHERE a.x >= 1.5 AND a.x <> 2.0 AND a.x > 3000000000",
        """
        a = a where and(and(gt(a.x, 1:int), ne(a.x, 2:int)), gt(cast(a.x):bigint, 3000000000:bigint))
        b = b
        a.k = b.k
        x: int = a.x
        """,
    ),
    "constant conditions are a selection of the first relation": (
        "SELECT a.x FROM a JOIN b ON a.k = b.k AND TRUE WHERE 1 = 2",
        """
        a = a where eq(1:int, 2:int)
        b = b
        a.k = b.k
        x: int = a.x
        """,
    ),
    "a cross join with equalities is a join": (
        "SELECT a.x FROM a CROSS JOIN b WHERE a.k = b.k;",
        """
        a = a
        b = b
        a.k = b.k
        x: int = a.x
        """,
    ),
    "USING shows its column once, the left one": (
        "SELECT k, * FROM untimed u JOIN wall USING (k)",
        """
        u = untimed
        wall = wall
        u.k = wall.k
        k: int = u.k
        k: int = u.k
        v: string = u.v
        ts: timestamp_ntz = wall.ts
        """,
    ),
    "columns of USING come first in the stars of both sides": (
        "SELECT a.*, b.* FROM (SELECT x, s, k FROM a) a JOIN (SELECT big, k FROM b) b USING (k)",
        """
        a = a
        b = b
        a.k = b.k
        k: int = a.k
        x: int = a.x
        s: string = a.s
        k: int = b.k
        big: bigint = b.big
        """,
    ),
    "repeated conditions count once": (
        "SELECT a.x FROM a JOIN b ON a.k = b.k AND a.x > 1 WHERE a.k = b.k AND a.x > 1",
        """
        a = a where gt(a.x, 1:int)
        b = b
        a.k = b.k
        x: int = a.x
        """,
    ),
}


@pytest.mark.parametrize("title", GOLDEN)
def test_text_compiles_to(streams, title):
    text, expected = GOLDEN[title]
    assert described(compile_sql(text, streams)) == textwrap.dedent(expected).strip()


def test_star_shows_all_columns_in_the_order_of_the_relations(streams):
    query = compile_sql("SELECT * FROM untimed u JOIN wall ON u.k = wall.k", streams)
    assert [(column.name, str(column.expression)) for column in query.output] == [
        ("k", "u.k"),
        ("v", "u.v"),
        ("k", "wall.k"),
        ("ts", "wall.ts"),
    ]


def test_constants_without_a_zone_are_read_in_the_session_zone(streams):
    text = "SELECT a.x FROM a JOIN b ON a.k = b.k WHERE a.ts > '2024-07-01'"
    assert "1719792000000000" in str(compile_sql(text, streams).relations[0].selection)
    in_berlin = compile_sql(text, streams, timezone="Europe/Berlin")
    assert "1719784800000000" in str(in_berlin.relations[0].selection)


def test_equal_texts_compile_to_equal_queries(streams):
    text = "SELECT a.x, b.d FROM a JOIN b ON a.k = b.k WHERE a.price * 2 > 1.5 AND b.s IN ('u', 'v')"
    assert compile_sql(text, streams) == compile_sql(text, streams)
    assert hash(compile_sql(text, streams)) == hash(compile_sql(text, streams))


def test_windows_in_brackets_are_windows_of_derived_tables(streams: dict[str, Stream]) -> None:
    window = "[Range 10 seconds, Slide 5 seconds]"
    derived = "(SELECT *, window(ts, '10 seconds', '5 seconds') AS window FROM {0}) AS {1}"
    p, a = derived.format("a", "p"), derived.format("b", "a")
    for written, spelled_out in (
        (f"SELECT SUM(x) FROM a {window} AS p GROUP BY k", f"SELECT SUM(x) FROM {p} GROUP BY k, p.window"),
        (f"SELECT COUNT(*) FROM a {window} AS p", f"SELECT COUNT(*) FROM {p} GROUP BY p.window"),
        (
            f"SELECT p.x FROM a {window} AS p, b {window} AS a WHERE p.k = a.k",
            f"SELECT p.x FROM {p}, {a} WHERE p.k = a.k AND p.window = a.window",
        ),
        (
            f"SELECT p.x, p.window FROM a {window} AS p JOIN b {window} AS a ON p.k = a.k WITHIN 2 SECONDS",
            f"SELECT p.x, p.window FROM {p} JOIN {a} ON p.k = a.k WHERE p.window = a.window WITHIN 2 SECONDS",
        ),
    ):
        one, other = (compile_sql(text, streams) for text in (written, spelled_out))
        assert replace(one, sql="") == replace(other, sql="")
