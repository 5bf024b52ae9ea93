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
