"""Groups without end, or of odd shapes."""

from __future__ import annotations

from benchmarks.hostile.corpus.bind import NEAR
from benchmarks.hostile.records import of

QUERIES = (
    *of(
        "a group for every row",
        *(
            "SELECT k, ts, s, odd, COUNT(*) AS n FROM a GROUP BY k, ts, s, odd",
            "SELECT DISTINCT * FROM a",
            "SELECT COUNT(DISTINCT k, ts, s, odd) AS n FROM a",
            "SELECT unix_micros(ts) AS x, MAX(odd) AS y FROM a GROUP BY unix_micros(ts)",
        ),
        *(
            "SELECT k, s, COUNT(DISTINCT ts) AS x, COUNT(DISTINCT odd) AS y, COUNT(DISTINCT m) AS z FROM a GROUP BY k, s",
            "SELECT k || s || CAST(ts AS STRING) AS x FROM a GROUP BY k || s || CAST(ts AS STRING)",
        ),
        f"SELECT a.k, a.ts, b.ts AS u, COUNT(*) AS n FROM a JOIN b ON a.k = b.k AND {NEAR} GROUP BY a.k, a.ts, b.ts",
        f"SELECT DISTINCT a.k, a.ts, b.ts AS u, a.odd, b.odd AS p FROM a JOIN b ON a.k = b.k AND {NEAR}",
    ),
    *of(
        "odd groups",
        *(
            "SELECT COUNT(*) AS n FROM a",
            "SELECT COUNT(*) AS n, COUNT(*) AS n FROM a",
            "SELECT COUNT(*) + COUNT(*) * 0 AS n FROM a",
            "SELECT 1 AS x FROM a GROUP BY k",
            "SELECT MAX(t) AS x, MIN(t) AS y FROM a",
        ),
        *(
            "SELECT t, MAX(s || odd) AS x FROM a GROUP BY t",
            "SELECT MIN(ts) AS x, MAX(day) AS y FROM a",
            "SELECT k FROM a GROUP BY k HAVING FALSE",
            "SELECT COUNT(*) AS n FROM a HAVING COUNT(*) < 0",
            "SELECT SUM(v) AS n FROM a WHERE FALSE",
        ),
        *(
            "SELECT k + 1 AS x FROM a GROUP BY k + 1",
            "SELECT k + 1 AS x FROM a GROUP BY k",
            "SELECT k AS x FROM a GROUP BY 1",
            "SELECT upper(s) AS x, COUNT(*) AS n FROM a GROUP BY s",
            "SELECT CASE WHEN COUNT(*) > 1 THEN MAX(v) END AS x FROM a",
        ),
        *(
            "SELECT approx_count_distinct(odd, 0.5) AS x FROM a",
            "SELECT approx_count_distinct(d, 0.0000001) AS x FROM a",
            "SELECT AVG(CAST(big AS DECIMAL(38, 0))) AS x FROM a",
            "SELECT SUM(CAST(big AS DECIMAL(38, 10))) AS x FROM a",
        ),
        *(
            "SELECT k, COUNT(*) AS n FROM a WHERE k IS NULL GROUP BY k",
            "SELECT COUNT(v, k, s, NULL) AS n FROM a",
            "SELECT SUM(CAST(t AS INT)) AS x FROM a",
            "SELECT SUM(t) AS x FROM a",
            "SELECT SUM(s) AS x FROM a",
            "SELECT AVG(odd) AS x FROM a",
        ),
        f"SELECT a.k, COUNT(*) AS n FROM a LEFT JOIN b ON a.k = b.k AND {NEAR} GROUP BY a.k HAVING COUNT(b.k) = 0",
        f"SELECT COUNT(*) AS n, SUM(a.v * b.v) AS x, MIN(a.m - b.m) AS y FROM a JOIN b ON a.k = b.k AND {NEAR}",
    ),
)
