"""Values at the edge: NaN, both zeros, infinities, the first and last dates, all of them as keys, orders and groups."""

from __future__ import annotations

from benchmarks.hostile.corpus.bind import NEAR
from benchmarks.hostile.records import of

QUERIES = (
    *of(
        "NaN, zeros and infinities",
        *(
            "SELECT k FROM a WHERE d = d",
            "SELECT k FROM a WHERE d <> d",
            "SELECT k FROM a WHERE d > 1e308",
            "SELECT k FROM a WHERE d = 0.0",
        ),
        *(
            "SELECT k FROM a WHERE d IN (CAST('NaN' AS DOUBLE), -0.0)",
            "SELECT k FROM a WHERE d BETWEEN 0 AND CAST('NaN' AS DOUBLE)",
            "SELECT d + d, d - d, d * 0, d * -1 FROM a",
        ),
        *(
            "SELECT d, COUNT(*) AS n FROM a GROUP BY d",
            "SELECT -d AS x, COUNT(*) AS n FROM a GROUP BY -d",
            "SELECT DISTINCT d FROM a",
            "SELECT COUNT(DISTINCT d) AS n FROM a",
        ),
        *(
            "SELECT k, MIN(d) AS x, MAX(d) AS y FROM a GROUP BY k",
            "SELECT SUM(d) AS x FROM a",
            "SELECT k, AVG(d) AS x FROM a GROUP BY k",
            "SELECT SUM(d * 1e308) AS x FROM a",
        ),
        *(
            "SELECT greatest(d, 0.0), least(d, -0.0) FROM a",
            "SELECT isnan(d), sign(d), abs(d), signum(-d) FROM a",
            "SELECT k FROM a WHERE nullif(d, d) IS NULL",
            "SELECT k FROM a WHERE d / 0 > 1",
        ),
        *(
            "SELECT CAST(d AS FLOAT) AS x FROM a",
            "SELECT CAST(d AS BOOLEAN) AS x FROM a",
            "SELECT CAST(d AS STRING) AS x FROM a",
            "SELECT CAST('NaN' AS DOUBLE) % d AS x FROM a",
        ),
        f"SELECT a.k, b.d FROM a JOIN b ON a.d = b.d AND a.k = b.k AND {NEAR}",
        f"SELECT a.k FROM a JOIN b ON -a.d = b.d AND a.k = b.k AND {NEAR}",
        f"SELECT a.k FROM a JOIN b ON a.d <=> b.d AND a.k = b.k AND {NEAR}",
        f"SELECT a.k FROM a JOIN b ON a.k = b.k AND a.d < b.d AND {NEAR}",
        f"SELECT a.k FROM a JOIN b ON a.k = b.k AND ABS(a.d - b.d) <= 1 AND {NEAR}",
        f"SELECT a.k FROM a JOIN b ON a.k = b.k AND a.d BETWEEN b.d - CAST('Infinity' AS DOUBLE) AND b.d AND {NEAR}",
    ),
    *of(
        "dates at the ends",
        *(
            "SELECT date_add(day, 1) AS x FROM a",
            "SELECT date_sub(day, 2147483647) AS x FROM a",
            "SELECT date_add(day, v * 1000000) AS x FROM a",
            "SELECT datediff(day, DATE '9999-12-31') AS x FROM a",
        ),
        *(
            "SELECT year(day), month(day), weekofyear(day), dayofweek(day), quarter(day) FROM a",
            "SELECT CAST(day AS TIMESTAMP) AS x FROM a",
            "SELECT CAST(day AS STRING) AS x FROM a",
        ),
        *(
            "SELECT timestamp_seconds(big) AS x FROM a",
            "SELECT timestamp_micros(big) AS x FROM a",
            "SELECT timestamp_millis(big) AS x FROM a",
            "SELECT unix_micros(CAST(day AS TIMESTAMP)) AS x FROM a",
        ),
        *(
            "SELECT date_trunc('nonsense', ts) AS x FROM a",
            "SELECT date_trunc(s, ts) AS x FROM a",
            "SELECT date_trunc('week', CAST(day AS TIMESTAMP)) AS x FROM a",
            "SELECT extract(nonsense FROM ts) AS x FROM a",
        ),
        *(
            "SELECT ts + INTERVAL 3000000 DAYS AS x FROM a",
            "SELECT ts - INTERVAL 3000000 DAYS AS x FROM a",
            "SELECT day + INTERVAL 1 MONTH AS x FROM a",
            "SELECT ts + INTERVAL 99999999999999 DAYS AS x FROM a",
        ),
        *(
            "SELECT MIN(day) AS x, MAX(day) AS y FROM a",
            "SELECT day, COUNT(*) AS n FROM a GROUP BY day",
            "SELECT day - day AS x FROM a",
            "SELECT ts - ts AS x FROM a",
            "SELECT DATE '10000-01-01' AS x FROM a",
        ),
        f"SELECT a.k FROM a JOIN b ON a.day = b.day AND a.k = b.k AND {NEAR}",
        f"SELECT a.k FROM a JOIN b ON a.k = b.k AND a.day < date_add(b.day, 2147483647) AND {NEAR}",
        f"SELECT a.k FROM a JOIN b ON a.k = b.k AND a.day BETWEEN b.day - INTERVAL 5 DAYS AND b.day AND {NEAR}",
    ),
    *of(
        "odd intervals",
        *(
            f"SELECT ts + {text} AS x FROM a"
            for text in (
                "INTERVAL '1' YEAR",
                "INTERVAL -5 SECONDS",
                "INTERVAL 1.5 SECONDS",
                "INTERVAL 'x' SECONDS",
                "INTERVAL '1 day 2 hours'",
                "INTERVAL 1 FORTNIGHT",
                "INTERVAL",
                "INTERVAL 1",
            )
        ),
        *(
            f"SELECT ts + {text} AS x FROM a"
            for text in (
                "INTERVAL 9223372036854775807 MICROSECONDS",
                "INTERVAL '1:2:3' HOUR TO SECOND",
                "INTERVAL v SECONDS",
                "INTERVAL 1 DAY * 1000000000000",
                "INTERVAL '1' DAY + INTERVAL '1' MONTH",
                "make_interval(1)",
                "-INTERVAL 5 SECONDS",
                "INTERVAL '9999999999' YEARS",
            )
        ),
    ),
    *of(
        "odd texts as values",
        *(
            "SELECT upper(odd), lower(odd), reverse(odd), length(odd) FROM a",
            "SELECT substring(odd, -3, 2), left(odd, 2), right(odd, 1) FROM a",
            "SELECT trim(odd), ltrim(odd), rtrim(odd) FROM a",
        ),
        *(
            "SELECT odd, COUNT(*) AS n FROM a GROUP BY odd",
            "SELECT DISTINCT odd FROM a",
            "SELECT MIN(odd) AS x, MAX(odd) AS y FROM a",
            "SELECT COUNT(DISTINCT odd, s) AS n FROM a",
            "SELECT k FROM a WHERE odd < s",
        ),
        *(
            "SELECT replace(odd, '', 'x'), instr(odd, ''), locate('', odd, 5) FROM a",
            "SELECT lpad(odd, 5, odd), rpad(s, 7, odd) FROM a",
            "SELECT concat(odd, NULL, s), odd || v FROM a",
            "SELECT trim(BOTH odd FROM s) FROM a",
        ),
        f"SELECT a.k FROM a JOIN b ON a.odd = b.odd AND a.k = b.k AND {NEAR}",
        f"SELECT a.k FROM a JOIN b ON a.k = b.k AND a.odd < b.odd AND {NEAR}",
    ),
)
