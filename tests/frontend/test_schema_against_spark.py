"""Names and types of the answer are those that Spark gives the same text."""

from __future__ import annotations

import pytest

from dovetail.frontend.compile_sql import compile_sql
from dovetail.query.stream import Stream

pytestmark = pytest.mark.spark

JOIN = "FROM a JOIN b ON a.k = b.k"
TEXTS = [
    "SELECT * FROM a JOIN b ON a.k = b.k",
    "SELECT b.*, a.X, A.big AS BigOne FROM a JOIN b ON a.k = b.k",
    "SELECT * FROM a JOIN b USING (k)",
    "SELECT k, * FROM a JOIN b USING (k, x) JOIN c USING (k)",
    "SELECT b.*, a.* FROM a JOIN b USING (s, x)",
    "SELECT c.*, b.*, a.* FROM a JOIN b USING (ts, k) JOIN c ON b.big = c.big",
    "SELECT a.* FROM a LEFT SEMI JOIN b USING (dt, s)",
    "SELECT q.*, b.* FROM (SELECT x + 1 AS y, s, k FROM a) q JOIN b USING (k)",
    "SELECT q.* FROM (SELECT k AS Key, x + 1 AS more, upper(s) FROM a WHERE ok) q JOIN b ON q.key = b.k",
    f"SELECT a.x + 1, a.x * b.big, a.x / 2, -a.x, a.price + 1, a.price * a.price, a.price / 3 {JOIN}",
    f"SELECT a.x > 1, NOT a.ok, a.x = 1 AND b.ok, a.x <=> b.x, a.x % 2, a.x DIV 2, (a.x), -5, 7, 'text', true {JOIN}",
    f"SELECT abs(a.x), coalesce(a.x, b.big), upper(a.s), length(a.s), year(a.ts), date_add(a.dt, 1) {JOIN}",
    f"SELECT CAST(a.x AS STRING), a.big::INT, concat(a.s, b.s), greatest(a.x, b.d), nullif(a.x, 1) {JOIN}",
    f"SELECT CASE WHEN a.ok THEN a.x ELSE a.price END AS c, a.x + a.f AS f, a.f * 2 AS g, a.f * a.price AS h {JOIN}",
    f"SELECT round(a.price, 1) AS r, floor(a.d) AS f, ceil(a.price) AS c, sign(a.x) AS s, sqrt(a.x) AS q {JOIN}",
    f"SELECT a.ts + INTERVAL 5 SECONDS AS t, a.dt + 1 AS d, date_trunc('day', a.dt) AS m {JOIN}",
    """SELECT p.w, p.w.start, q.w.end, p.*, window.start AS s
       FROM (SELECT k, window(ts, '4 seconds', '2 seconds') AS w FROM a) p
       JOIN (SELECT k, window(ts, '4 seconds', '2 seconds') AS w FROM b) q ON p.w = q.w
       JOIN (SELECT k, window(ts, '1 minute') FROM c) r ON r.k = q.k""",
    "SELECT x, s FROM a WHERE ok",
    "SELECT COUNT(*), COUNT(1), COUNT(x), COUNT(x, s), COUNT(DISTINCT x), COUNT(DISTINCT x, s) FROM a",
    "SELECT SUM(x), sum(big), SUM(f), SUM(d), SUM(price), SUM(x * 2), SUM(price * price), SUM(price + x) FROM a",
    "SELECT AVG(x), avg(f), AVG(d), AVG(price), mean(x), AVG(price * price * price * price * price) FROM a",
    "SELECT SUM(CAST(price AS DECIMAL(38, 10))) AS s, AVG(CAST(price AS DECIMAL(38, 10))) AS a FROM a",
    "SELECT SUM(CAST(price AS DECIMAL(38, 37))) AS s, AVG(CAST(price AS DECIMAL(38, 37))) AS a FROM a",
    "SELECT MIN(x), MAX(s), MIN(dt), MAX(ts), MIN(ok), MAX(price), MIN(f), approx_count_distinct(s) FROM a",
    f"SELECT a.k, a.x + 1, COUNT(*) AS n, SUM(b.big) / COUNT(*), SUM(a.x) + 1 {JOIN} GROUP BY a.k, a.x + 1",
    f"SELECT a.x + 1 AS y, (a.x + 1) * 2 AS z {JOIN} GROUP BY y HAVING COUNT(*) > 5 AND y > 1 AND MAX(b.d) < 3.5",
    f"SELECT a.s, CASE WHEN COUNT(*) > 1 THEN MAX(a.price) ELSE SUM(b.x) END AS c {JOIN} GROUP BY 1 HAVING c > 2",
    "SELECT window.start, window.end, window, COUNT(*) FROM a GROUP BY window(ts, '10 seconds', '5 seconds')",
    "SELECT window(ts, '10 seconds'), window(ts, '10 seconds').start AS s FROM a GROUP BY window(ts, '10 seconds')",
    "SELECT window(ts, '10 seconds') AS w, k, SUM(x) FROM a GROUP BY w, k",
    "SELECT d.w, d.w.start, w.end, COUNT(*) FROM (SELECT window(ts, '4 seconds') AS w FROM a) d GROUP BY d.w",
    "SELECT d.w.end, SUM(k) FROM (SELECT k, window(ts, '4 seconds') AS w FROM a) d GROUP BY w.end",
    "SELECT window.start, k FROM (SELECT k, window(ts, '4 seconds') FROM a) d GROUP BY window, k HAVING k > 1",
    f"SELECT DISTINCT a.x, a.s, b.ts, a.x + b.x {JOIN}",
    "SELECT DISTINCT * FROM a JOIN b USING (k)",
    "SELECT * FROM a LEFT JOIN b ON a.k = b.k AND a.ts = b.ts",
    "SELECT x, *, b.s FROM a LEFT JOIN b USING (ts, x)",
    """SELECT *, q.one + 1, q.w.start FROM a
       RIGHT JOIN (SELECT ts, 1 AS one, coalesce(s, '') AS t, window(ts, '4 seconds') AS w FROM b) q ON a.ts = q.ts""",
    """SELECT q.w, p.* FROM (SELECT ts, upper(s), window(ts, '4 seconds') AS w FROM a) p
       FULL JOIN (SELECT ts, x + 1 AS y, window(ts, '4 seconds') AS w FROM b) q ON p.w = q.w WHERE q.y IS NULL""",
    "SELECT x, * FROM a LEFT SEMI JOIN b USING (x, s)",
    "SELECT * FROM a LEFT ANTI JOIN b ON a.ts = b.ts",
    "SELECT * FROM a WHERE EXISTS (SELECT * FROM b WHERE a.k = b.k) AND x > 1",
    "SELECT k, SUM(x) FROM a WHERE x IN (SELECT k FROM b WHERE b.s = a.s) GROUP BY k",
]


def spark_type(name: str) -> str:
    return "struct<start:timestamp,end:timestamp>" if name == "window" else name


@pytest.mark.parametrize("text", TEXTS)
def test_answer_has_the_schema_that_spark_gives(spark, streams, text):
    for name in ("a", "b", "c"):
        register(spark, streams[name])
    expected = [(field.name, field.dataType.simpleString()) for field in spark.sql(text).schema]
    query = compile_sql(text, streams)
    assert [(column.name, spark_type(str(column.type))) for column in query.output] == expected


def register(spark, stream: Stream) -> None:
    columns = ", ".join(f"CAST(NULL AS {sql_type}) AS {name}" for name, sql_type in stream.columns)
    spark.sql(f"SELECT {columns}").createOrReplaceTempView(stream.name)
