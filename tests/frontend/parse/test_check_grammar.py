"""Texts that sqlglot passes over and Spark refuses are refused, with their place; all others are read."""

from __future__ import annotations

import pytest

from dovetail.core.errors import SqlError
from dovetail.frontend.compile_sql import compile_sql
from dovetail.query.stream import Stream

REFUSED = [
    ("SELECT x,, k FROM a", "line 1, column 10"),
    ("SELECT x, FROM a", "line 1, column 11"),
    ("SELECT , x FROM a", "line 1, column 8"),
    ("SELECT a.x FROM a JOIN b USING k", "line 1, column 32"),
    ("SELECT a.x FROM a JOIN b USING (k,)", "line 1, column 35"),
    ("SELECT x FROM a WHERE x BETWEEN 1 2", "line 1, column 35"),
    ("SELECT x FROM a WHERE x IN (1,, 2)", "line 1, column 31"),
    ("SELECT coalesce(x, 1,) AS y FROM a", "line 1, column 22"),
    ("SELECT x FROM a @v", "line 1, column 17"),
    ("SELECT CAST(x AS TEXT) AS t FROM a", "line 1, column 18"),
    ("SELECT CAST(x AS INT4) AS t FROM a", "line 1, column 18"),
    ("SELECT x, COUNT(*) AS n FROM a HAVING n > 1 GROUP BY x", "line 1, column 45"),
    ("SELECT x, COUNT(*) AS n FROM a GROUP BY x, HAVING n > 1", None),
    ("SELECT a.x FROM a JOIN b ON a.k = b.k WHERE a.ts < b.ts + INTERVAL - - 5 SECONDS", None),
    ("SELECT CASE WHEN ok THEN 1 ELSE 2 AS c FROM a", None),
    ("SELECT x FROM a WHERE d < 1e400", None),
    ("SELECT x FROM a WHERE", None),
    ("SELECT x FROM a, WHERE x = 1", None),
    ("SELECT x AS 5 FROM a", None),
    ("SELECT x FROM a AS 'a'", None),
    ("SELECT CAST(s AS STRING COLLATE UTF8_LCASE) AS c FROM a", "line 1, column 25"),
    ("SELECT CAST(s AS CHAR) AS c FROM a", "line 1, column 22"),
    ("SELECT round(x, CAST(NULL AS INT)) AS r FROM a", None),
    ("SELECT trim(BOTH s) AS t FROM a", None),
]
READ = [
    "SELECT CAST(s AS VARCHAR(3)) AS v, CAST(x AS CHAR(3)) AS c, CAST(x AS DEC(5)) AS d, x::long AS l FROM a",
    "SELECT x, CASE ok WHEN TRUE THEN 1 END AS c, -x AS m, 5L AS l, 1.5D AS d, 2BD AS e, `s` FROM a AS `a`;",
    "SELECT trim(LEADING FROM s) AS t, trim('x' FROM s) AS u, trim(s) AS v FROM a",
    "SELECT trim(BOTH 'x' FROM s) AS t, extract(YEAR FROM ts) AS y, substring(s, 1, 2) AS u, x::STRING AS v FROM a",
    "SELECT a.x FROM a, b WHERE a.k = b.k AND a.ts > b.ts - INTERVAL 1 MINUTE 30 SECONDS AND NOT a.s LIKE 'a!%'",
    "SELECT a.x FROM a WITHIN 5 SECONDS JOIN b WITHIN INTERVAL '1' MINUTE ON a.k = b.k AND ! a.ok",
    "SELECT COUNT(DISTINCT x, s) AS n, COUNT(*) AS m FROM a WHERE x IS NOT DISTINCT FROM 1 OR s NOT IN ('a', 'b')",
    "SELECT a.x FROM a [Range 10 seconds, Slide 5 seconds], b [Range 10 seconds, Slide 5 seconds] AS q WHERE a.k = q.k",
    "SELECT a.x FROM a LEFT ANTI JOIN b ON b.ts BETWEEN a.ts AND a.ts + INTERVAL '0 00:00:05' DAY TO SECOND",
    "SELECT x FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k) AND dt > DATE '2024-01-01' -- the end",
]


@pytest.mark.parametrize(("text", "where"), REFUSED)
def test_what_spark_does_not_read_is_refused_at_its_place(
    streams: dict[str, Stream], text: str, where: str | None
) -> None:
    with pytest.raises(SqlError) as caught:
        compile_sql(text, streams)
    assert where in (None, caught.value.where)


@pytest.mark.parametrize("text", READ)
def test_what_spark_reads_is_read(streams: dict[str, Stream], text: str) -> None:
    assert compile_sql(text, streams).relations
