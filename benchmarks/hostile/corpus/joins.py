"""Joins that meet everybody: cross products, hot keys, no equality, no time."""

from __future__ import annotations

from benchmarks.hostile.corpus.bind import NEAR
from benchmarks.hostile.records import of

QUERIES = (
    *of(
        "cross products",
        *(
            "SELECT a.k FROM a CROSS JOIN b",
            "SELECT a.k FROM a, b",
            "SELECT a.k FROM a JOIN b ON TRUE",
            "SELECT a.k FROM a JOIN b ON 1 = 1",
            "SELECT a.k FROM a JOIN b",
            "SELECT a.k FROM a JOIN b ON a.k = a.k",
        ),
        *(
            "SELECT a.k FROM a JOIN b ON a.v > 0 AND b.v > 0",
            "SELECT a.k FROM a, b, c WHERE a.k = b.k",
            "SELECT a.k FROM a, a AS b, a AS c, a AS d, a AS e",
            "SELECT a.k FROM a JOIN b ON a.k = b.k OR TRUE",
        ),
        *(
            "SELECT a.k FROM a JOIN b ON a.k - a.k = b.k - b.k",
            "SELECT a.k FROM a, b WHERE a.k = b.k OR a.k <> b.k",
            "SELECT a.k FROM a JOIN b ON NOT (a.k < b.k AND a.k > b.k)",
        ),
        compares=False,
    ),
    *of(
        "joins without an equality",
        *(
            "SELECT a.k FROM a JOIN b ON a.k <> b.k",
            "SELECT a.k FROM a JOIN b ON a.v < b.v + 1000",
            "SELECT a.k FROM a JOIN b ON a.s <> b.s OR a.v % 3 = b.v % 3",
            "SELECT a.k FROM a JOIN b ON a.v + b.v >= 0",
        ),
        *(
            "SELECT a.k FROM a JOIN b ON a.s || b.s LIKE '%'",
            "SELECT a.k FROM a JOIN b ON coalesce(a.k, b.k) IS NOT NULL",
            f"SELECT a.k FROM a JOIN b ON {NEAR}",
            "SELECT a.k FROM a JOIN b ON a.ts < b.ts OR a.ts >= b.ts",
        ),
        *(
            "SELECT a.k FROM a JOIN b ON a.t OR b.t",
            "SELECT a.k FROM a JOIN b ON (a.v = b.v) IS NOT NULL",
            "SELECT a.k FROM a JOIN b ON greatest(a.v, b.v) >= least(a.v, b.v)",
            "SELECT a.k FROM a JOIN b ON a.d < b.d OR a.d >= b.d",
        ),
        *(
            "SELECT a.k FROM a JOIN b ON a.day <= b.day",
            "SELECT a.k FROM a JOIN b ON length(a.s) + length(b.s) >= 0",
            "SELECT a.k FROM a JOIN b ON a.odd < b.odd || 'zzz'",
            "SELECT a.k, b.k AS l FROM a JOIN b ON ABS(a.k - b.k) <= 1000000",
        ),
        compares=False,
    ),
    *of(
        "hot keys",
        *(
            "SELECT a.k FROM a JOIN b ON a.t = b.t",
            "SELECT a.k FROM a JOIN b ON a.k * 0 = b.k * 0",
            "SELECT a.k FROM a JOIN b ON a.v % 1 = b.v % 1",
            "SELECT a.k FROM a JOIN b ON length(a.s) = length(b.s)",
        ),
        *(
            "SELECT a.k FROM a JOIN b ON a.t <=> b.t",
            "SELECT a.k FROM a JOIN b ON year(a.ts) = year(b.ts)",
            "SELECT a.k FROM a JOIN b ON (a.k > 0) = (b.k > 0)",
            "SELECT a.k FROM a JOIN b ON left(a.s, 0) = left(b.s, 0)",
        ),
        *(
            "SELECT COUNT(*) AS n FROM a JOIN b ON a.t = b.t",
            "SELECT a.k, COUNT(*) AS n FROM a JOIN b ON a.t = b.t GROUP BY a.k",
            "SELECT a.k, b.k AS l, a.s || b.s AS x FROM a JOIN b ON a.t = b.t",
        ),
        *(
            "SELECT x.k FROM a AS x JOIN a AS y ON x.t = y.t JOIN a AS z ON y.t = z.t",
            "SELECT a.k FROM a JOIN b ON coalesce(a.k, 0) - a.k = coalesce(b.k, 0) - b.k",
            "SELECT a.k FROM a JOIN b ON if(a.t, 1, 1) = if(b.t, 1, 1)",
        ),
        compares=False,
    ),
    *of(
        "chains of joins that explode",
        "SELECT a.k FROM a JOIN b ON a.t = b.t JOIN c ON b.t = c.t",
        "SELECT p.k FROM a AS p JOIN a AS q ON p.s = q.s JOIN a AS r ON q.s = r.s JOIN a AS u ON r.s = u.s JOIN a AS w ON u.s = w.s",
        "SELECT p.k FROM a AS p JOIN b AS q ON p.s = q.s JOIN c AS r ON p.s = r.s",
        f"SELECT a.k FROM a JOIN b ON a.v = b.v AND {NEAR} JOIN c ON c.v <> b.v",
        "SELECT a.k FROM a JOIN b ON a.t = b.t JOIN c ON a.v + b.v < c.v",
        "SELECT a.k FROM a JOIN b USING (t) JOIN c USING (t)",
        "SELECT COUNT(*) AS n FROM a JOIN b ON a.t = b.t JOIN c ON b.t = c.t",
        "SELECT p.k FROM a p JOIN a q ON p.k = q.k JOIN a r ON q.k = r.k JOIN a u ON r.k = u.k JOIN a w ON u.k = w.k JOIN a x ON w.k = x.k",
        compares=False,
    ),
    *of(
        "long texts as keys",
        f"SELECT a.k FROM a JOIN b ON repeat(a.s, 20000) = repeat(b.s, 20000) AND a.k = b.k AND {NEAR}",
        f"SELECT a.k FROM a JOIN b ON rpad(a.s, 60000, 'x') = rpad(b.s, 60000, 'x') AND {NEAR}",
        f"SELECT a.k FROM a JOIN b ON rpad(a.s, 60000, 'x') < rpad(b.s, 60000, 'x') AND a.k = b.k AND {NEAR}",
        "SELECT rpad(s, 100000, 'x') AS x, COUNT(*) AS n FROM a GROUP BY rpad(s, 100000, 'x')",
        "SELECT DISTINCT rpad(CAST(k AS STRING), 100000, 'x') AS x FROM a",
        "SELECT MAX(rpad(s, 1000000, 'y')) AS x FROM a",
        "SELECT COUNT(DISTINCT rpad(CAST(k AS STRING), 50000, 'x')) AS n FROM a",
        f"SELECT a.k FROM a JOIN b ON a.s || repeat(CAST(a.k AS STRING), 10000) = b.s AND {NEAR}",
        "SELECT d.x, COUNT(*) AS n FROM (SELECT lpad(s, 200000, odd) AS x FROM a) AS d GROUP BY d.x",
        compares=False,
    ),
    *of(
        "many keys at once",
        f"SELECT a.k FROM a JOIN b ON {' AND '.join(f'a.v + {i} = b.v + {i}' for i in range(60))} AND {NEAR}",
        f"SELECT a.k FROM a JOIN b ON a.k = b.k AND a.v = b.v AND a.s = b.s AND a.d = b.d AND a.m = b.m AND a.t = b.t AND a.day = b.day AND a.odd = b.odd AND a.big = b.big AND {NEAR}",
        f"SELECT a.k FROM a JOIN b ON {' OR '.join(f'a.k = b.k + {i}' for i in range(80))} AND {NEAR}",
        f"SELECT a.k FROM a JOIN b ON CASE WHEN a.t THEN a.k ELSE a.v END = CASE WHEN b.t THEN b.k ELSE b.v END AND a.k = b.k AND {NEAR}",
        f"SELECT a.k FROM a JOIN b ON a.k = b.k AND {NEAR} WHERE {' AND '.join(f'a.v + b.v <> {i + 100}' for i in range(200))}",
        f"SELECT a.k FROM a JOIN b ON {' AND '.join(f'a.k BETWEEN b.k - {i} AND b.k + {i}' for i in range(40))} AND {NEAR}",
        f"SELECT a.k FROM a JOIN b ON a.k = b.k AND a.k = b.v AND a.v = b.k AND {NEAR}",
        f"SELECT a.k FROM a JOIN b ON a.k = b.m AND a.d = b.v AND {NEAR}",
        f"SELECT a.k FROM a JOIN b ON a.s = b.v AND {NEAR}",
    ),
)
