"""Texts that parse and mean nothing, or something else: names, types, clauses in the wrong place, ways to the machine."""

from __future__ import annotations

from benchmarks.hostile.records import of

NEAR = "b.ts BETWEEN a.ts - INTERVAL 10 SECONDS AND a.ts + INTERVAL 10 SECONDS"

QUERIES = (
    *of(
        "names that do not exist",
        *("SELECT nothing FROM a", "SELECT k FROM nowhere", "SELECT z.k FROM a", "SELECT a.b.c.d.e FROM a"),
        *(
            "SELECT nowhere.* FROM a",
            "SELECT `a.k` FROM a",
            "SELECT k FROM a WHERE nothing(v) = 1",
            "SELECT K.k FROM a",
        ),
        *("SELECT k FROM db.a", "SELECT k FROM spark_catalog.default.a", "SELECT _metadata.file_path FROM a"),
        *("SELECT k FROM a GROUP BY nothing", "SELECT k FROM a GROUP BY 7", "SELECT k FROM a GROUP BY 0"),
        *("SELECT a.k FROM a JOIN b USING (nothing)", "SELECT current_user FROM a", "SELECT __dovetail FROM a"),
        *("SELECT k FROM dovetail_control", "SELECT dovetail_batch FROM a", "SELECT _change FROM a"),
    ),
    *of(
        "names of two things",
        f"SELECT k FROM a JOIN b ON a.k = b.k AND {NEAR}",
        "SELECT a.k FROM a JOIN a ON a.k = a.k",
        f"SELECT x.k FROM a AS x JOIN b AS x ON x.k = x.k AND {NEAR}",
        "SELECT k AS x, v AS x FROM a",
        "SELECT d.x FROM (SELECT k AS x, v AS x FROM a) AS d",
        "SELECT k AS v, v AS k FROM a WHERE v = 1",
        "SELECT k AS v, COUNT(*) AS n FROM a GROUP BY v",
        "SELECT v + 1 AS v, COUNT(*) AS n FROM a GROUP BY v + 1 HAVING v > 1",
        "SELECT a.* , a.* FROM a",
        "SELECT K, k, `K` FROM a",
        "SELECT A.K FROM a AS `A`",
        "SELECT b.k FROM a AS b JOIN b AS a ON a.k = b.k AND a.ts = b.ts",
    ),
    *of(
        "aliases in circles",
        *("SELECT k + 1 AS x, x + 1 AS y FROM a", "SELECT y AS x, x AS y FROM a", "SELECT x AS x FROM a"),
        *(
            "SELECT k AS x FROM a WHERE x = 1",
            "SELECT COUNT(*) AS n FROM a HAVING n > n",
            "SELECT k AS k, k + k AS k FROM a",
        ),
        "SELECT d.y FROM (SELECT k AS x, x AS y FROM a) AS d",
        "SELECT e.k FROM (SELECT e.k FROM a AS e) AS e",
    ),
    *of(
        "reserved words as names",
        *("SELECT select FROM a", "SELECT k AS select FROM a", "SELECT k FROM a AS where", "SELECT k AS from FROM a"),
        *(
            "SELECT k AS `select` FROM a AS `from`",
            "SELECT k AS null FROM a",
            "SELECT k AS true FROM a",
            "SELECT k AS window FROM a",
        ),
        *(
            "SELECT k AS interval FROM a",
            "SELECT group.k FROM a AS group",
            "SELECT k AS `*` FROM a",
            "SELECT k AS `1` FROM a",
        ),
    ),
    *of(
        "odd names of columns",
        *(
            "SELECT k AS `` FROM a",
            "SELECT k AS ` ` FROM a",
            "SELECT k AS `a.b` FROM a",
            "SELECT k AS `../../x` FROM a",
        ),
        *("SELECT k AS `_change` FROM a", "SELECT k AS `dovetail_sequence` FROM a", "SELECT k AS `x``y` FROM a"),
        *("SELECT k AS `/etc/passwd` FROM a", "SELECT k AS `__index_level_0__` FROM a", "SELECT k AS `{batch}` FROM a"),
        "SELECT k AS `_change`, SUM(v) AS `_change` FROM a GROUP BY k",
        "SELECT k AS x, k AS x_2, k AS x, k AS X FROM a",
        f"SELECT {', '.join(['k AS x'] * 300)} FROM a",
    ),
    *of(
        "aggregates in the wrong place",
        *("SELECT k, SUM(v) AS n FROM a", "SELECT SUM(SUM(v)) AS n FROM a", "SELECT k FROM a WHERE SUM(v) > 1"),
        *("SELECT k FROM a GROUP BY SUM(v)", "SELECT k FROM a HAVING k > 1", "SELECT SUM(*) AS n FROM a"),
        *("SELECT COUNT() AS n FROM a", "SELECT * FROM a GROUP BY k", "SELECT SUM(DISTINCT v) AS n FROM a GROUP BY k"),
        *("SELECT DISTINCT k, COUNT(*) AS n FROM a GROUP BY k", "SELECT COUNT(DISTINCT *) AS n FROM a"),
        *(
            "SELECT SUM(v) FILTER (WHERE t) AS n FROM a",
            "SELECT k FROM a GROUP BY ALL",
            "SELECT collect_list(v) AS x FROM a",
        ),
        *("SELECT stddev(v) AS x FROM a", "SELECT first(v) AS x FROM a", "SELECT MIN(v, k) AS x FROM a"),
        f"SELECT a.k FROM a JOIN b ON SUM(a.v) = b.k AND {NEAR}",
        "SELECT k, v, COUNT(*) AS n FROM a GROUP BY ROLLUP (k, v)",
        "SELECT k, v, COUNT(*) AS n FROM a GROUP BY GROUPING SETS ((k), (v))",
    ),
    *of(
        "clauses that streams do not have",
        *(
            "SELECT k FROM a ORDER BY k",
            "SELECT k FROM a LIMIT 1",
            "SELECT k FROM a OFFSET 5",
            "SELECT k FROM a SORT BY k",
        ),
        *(
            "SELECT k FROM a DISTRIBUTE BY k",
            "SELECT k FROM a TABLESAMPLE (10 PERCENT)",
            "SELECT k FROM a QUALIFY 1 = 1",
        ),
        *("SELECT ROW_NUMBER() OVER (ORDER BY k) AS n FROM a", "SELECT SUM(v) OVER (PARTITION BY k) AS n FROM a"),
        *(
            "SELECT k FROM a LATERAL VIEW explode(array(1)) x AS y",
            "SELECT explode(sequence(1, 1000000000)) AS x FROM a",
        ),
        *(
            "SELECT k FROM a NATURAL JOIN b",
            "SELECT * FROM a PIVOT (SUM(v) FOR k IN (1, 2))",
            "SELECT k FROM a, LATERAL (SELECT 1)",
        ),
        *("SELECT k FROM range(1000000000)", "SELECT k FROM a VERSION AS OF 1", "SELECT * EXCEPT (k) FROM a"),
        "SELECT k FROM a WHERE v > (SELECT MAX(v) FROM b)",
        "SELECT (SELECT COUNT(*) FROM b) AS n FROM a",
        "SELECT k FROM a WHERE v > ALL (SELECT v FROM b)",
    ),
    *of(
        "ways to the machine",
        *(
            "SELECT reflect('java.lang.Runtime', 'getRuntime') AS x FROM a",
            "SELECT java_method('java.lang.System', 'exit', 1) FROM a",
        ),
        *(
            "SELECT k FROM parquet.`/etc/passwd`",
            "SELECT k FROM csv.`file:///etc/passwd`",
            "SELECT input_file_name() AS x FROM a",
        ),
        *(
            "SELECT k FROM read_files('/etc')",
            "SELECT secret('scope', 'key') AS x FROM a",
            "SELECT version() AS x FROM a",
        ),
        *(
            "SELECT current_database() AS x FROM a",
            "SELECT raise_error('x') AS x FROM a",
            "SELECT http_request('x') FROM a",
        ),
        *(
            "SELECT from_json(s, 'x INT') AS x FROM a",
            "SELECT python_udf(k) AS x FROM a",
            "SELECT sleep(100) AS x FROM a",
        ),
        *(
            "SELECT uuid() AS x FROM a",
            "SELECT rand() AS x FROM a",
            "SELECT now() AS x FROM a",
            "SELECT current_date AS x FROM a",
        ),
        *("SELECT monotonically_increasing_id() AS x FROM a", "SELECT spark_partition_id() AS x FROM a"),
    ),
    *of(
        "types that do not go together",
        *(
            "SELECT upper(ts) AS x FROM a",
            "SELECT -s AS x FROM a",
            "SELECT NOT v AS x FROM a",
            "SELECT k AND v AS x FROM a",
        ),
        *(
            "SELECT ts + ts AS x FROM a",
            "SELECT ts * 2 AS x FROM a",
            "SELECT day + t AS x FROM a",
            "SELECT t + 1 AS x FROM a",
        ),
        *(
            "SELECT k FROM a WHERE ts",
            "SELECT k FROM a WHERE v",
            "SELECT k FROM a WHERE s",
            "SELECT k FROM a WHERE NULL",
        ),
        *("SELECT CASE WHEN v THEN 1 END AS x FROM a", "SELECT CASE WHEN t THEN ts ELSE 1 END AS x FROM a"),
        *("SELECT k FROM a WHERE v IN (TRUE, ts)", "SELECT coalesce(t, ts) AS x FROM a", "SELECT v = ts AS x FROM a"),
        *("SELECT k FROM a WHERE s BETWEEN 1 AND ts", "SELECT array(1)[0] AS x FROM a", "SELECT map(1, 2) AS x FROM a"),
        *("SELECT named_struct('x', 1) AS x FROM a", "SELECT INTERVAL 1 DAY AS x FROM a", "SELECT X'00FF' AS x FROM a"),
        *("SELECT s[0] AS x FROM a", "SELECT s.x FROM a", "SELECT s:x FROM a", "SELECT CAST(v AS BINARY) AS x FROM a"),
        *(
            "SELECT CAST(ts AS INT) AS x FROM a",
            "SELECT CAST(t AS TIMESTAMP) AS x FROM a",
            "SELECT CAST(day AS BIGINT) AS x FROM a",
        ),
        *(
            "SELECT CAST(k AS ARRAY<INT>) AS x FROM a",
            "SELECT CAST(k AS TEXT) AS x FROM a",
            "SELECT CAST(s AS CHAR(5)) AS x FROM a",
        ),
        *(
            "SELECT s COLLATE UTF8_LCASE AS x FROM a",
            "SELECT CAST(v AS DECIMAL(39, 1)) AS x FROM a",
            "SELECT CAST(v AS INTERVAL) AS x FROM a",
        ),
        f"SELECT a.k FROM a JOIN b ON a.ts = b.k AND {NEAR}",
        f"SELECT a.k FROM a JOIN b ON a.t = b.s AND {NEAR}",
    ),
    *of(
        "NULLs without a type",
        *("SELECT k FROM a WHERE NULL = NULL", "SELECT k FROM a WHERE NULL <=> NULL", "SELECT k FROM a WHERE NOT NULL"),
        *(
            "SELECT NULL AS x FROM a",
            "SELECT NULL + NULL AS x FROM a",
            "SELECT k FROM a WHERE NULL IN (NULL)",
            "SELECT -NULL AS x FROM a",
        ),
        *(
            "SELECT k FROM a WHERE NULL BETWEEN NULL AND NULL",
            "SELECT k FROM a WHERE NULL LIKE NULL",
            "SELECT k FROM a WHERE s RLIKE NULL",
        ),
        *(
            "SELECT CASE WHEN NULL THEN NULL ELSE NULL END AS x FROM a",
            "SELECT coalesce(NULL, NULL) AS x FROM a",
            "SELECT NULL || NULL AS x FROM a",
        ),
        *(
            "SELECT SUM(NULL) AS x FROM a",
            "SELECT MAX(NULL) AS x FROM a",
            "SELECT COUNT(NULL) AS x FROM a",
            "SELECT COUNT(DISTINCT NULL) AS x FROM a",
        ),
        *(
            "SELECT DISTINCT NULL AS x FROM a",
            "SELECT greatest(NULL, NULL) AS x FROM a",
            "SELECT nullif(NULL, NULL) AS x FROM a",
        ),
        *(
            "SELECT k, COUNT(*) AS n FROM a GROUP BY k, NULL",
            "SELECT k FROM a GROUP BY k HAVING NULL",
            "SELECT abs(NULL) AS x FROM a",
        ),
        *(
            "SELECT CAST(NULL AS DECIMAL(38, 38)) AS x FROM a",
            "SELECT d.x FROM (SELECT NULL AS x, ts FROM a) AS d WHERE d.x = d.x",
        ),
        f"SELECT a.k FROM a JOIN b ON NULL = NULL AND {NEAR}",
        f"SELECT a.k FROM a JOIN b ON a.k = NULL AND {NEAR}",
        "SELECT x.n FROM (SELECT NULL AS n, ts FROM a) AS x JOIN b ON x.n = b.k AND b.ts = x.ts",
        f"SELECT a.k, SUM(x.n) AS z FROM a LEFT JOIN (SELECT k, NULL AS n, ts FROM b) AS x ON a.k = x.k AND {NEAR.replace('b.', 'x.')} GROUP BY a.k",
    ),
)
