"""Constants that overflow, divide by zero, do not cast, or grow without end: before any row, and where none is reached."""

from __future__ import annotations

from benchmarks.hostile.records import of

FAILING = (
    *(
        "2147483647 + 1",
        "9223372036854775807 + 1",
        "-(-2147483648)",
        "abs(-9223372036854775808)",
        "1 / 0",
        "1 % 0",
        "5 div 0",
    ),
    *(
        "pmod(1, 0)",
        "CAST('x' AS INT)",
        "CAST(1e308 AS DECIMAL(38, 38))",
        "CAST(300 AS TINYINT)",
        "sqrt(-1)",
        "pow(10, 400)",
    ),
    *("date_add(DATE '9999-12-31', 2147483647)", "timestamp_seconds(9223372036854775807)", "round(1.5, 2147483647)"),
)
GROWING = (
    *(
        "repeat('x', 1000000000)",
        "rpad('x', 300000000, 'y')",
        "lpad('', 2147483647, 'x')",
        "repeat(repeat('ab', 60000), 60000)",
    ),
    *("replace(repeat('a', 100000), 'a', repeat('b', 100000))", "concat(repeat('x', 16000000), repeat('y', 16000000))"),
    *(
        "repeat('x', -1)",
        "rpad('x', -5, '')",
        "rpad('abc', 10, '')",
        "left(repeat('x', 17000000), 5)",
        "repeat('', 2147483647)",
    ),
)

TEXTS_BY_TYPE = {
    "INT": ("''", "' 1 '", "'1.9'", "'\uff11'", "'2147483648'", "'0x10'", "'1e3'", "'+-1'", "'1_000'"),
    "BIGINT": ("'9223372036854775808'", "'-'", "'\u0663'", "'1L'"),
    "DOUBLE": ("'NaN'", "'Infinity'", "'-inf'", "'1e400'", "'0x1p3'", "'1d'", "'.'", "'1e'"),
    "DECIMAL(5, 2)": ("'999.995'", "'1000'", "'\uff11.5'", "'1e2'", "'1e-99999999'", "'NaN'"),
    "DECIMAL(38, 38)": ("'0.99999999999999999999999999999999999999'", "'1'", "'1e-38'", "'1e2147483647'"),
    "DATE": (
        "'10000-01-01'",
        "'2024-02-30'",
        "'0000-01-01'",
        "'epoch'",
        "'now'",
        "'-0001-01-01'",
        "'2024-1-1 junk'",
        "'\uff12024-01-01'",
    ),
    "TIMESTAMP": (
        "'12:30'",
        "'10000-01-01'",
        "'2024-01-01T25:00'",
        "'2024-01-01 00:00:00 Nowhere/Town'",
        "'294247-01-10'",
        "'2024-01-01T10:11:12+19:00'",
    ),
    "BOOLEAN": ("'yes'", "'T'", "'2'", "'tru'", "''"),
}

QUERIES = (
    *of("constants that fail, in SELECT", *(f"SELECT {text} AS x FROM a" for text in FAILING)),
    *of("constants that fail, in WHERE", *(f"SELECT k FROM a WHERE {text} IS NOT NULL" for text in FAILING)),
    *of(
        "constants that fail where no row comes",
        *(f"SELECT CASE WHEN v > 100 THEN {text} END AS x FROM a" for text in FAILING[:8]),
        *(f"SELECT k FROM a WHERE FALSE AND {text} IS NULL" for text in FAILING[4:9]),
        *(f"SELECT k FROM a WHERE v > 100 AND {text} IS NULL" for text in FAILING[4:9]),
        "SELECT coalesce(v, 1 / 0) AS x FROM a WHERE v IS NOT NULL",
        "SELECT if(t IS NULL OR t IS NOT NULL, 1, 1 / 0) AS x FROM a",
        "SELECT k FROM a WHERE v IN (1, CAST('x' AS INT))",
    ),
    *of(
        "constants that fail, in groups and joins",
        "SELECT k, SUM(1 / 0) AS n FROM a GROUP BY k",
        "SELECT k, COUNT(*) AS n FROM a GROUP BY k HAVING 1 / 0 > 1",
        "SELECT COUNT(*) AS n FROM a GROUP BY k, 1 / 0",
        "SELECT MAX(CAST('x' AS INT)) AS n FROM a",
        "SELECT a.k FROM a JOIN b ON a.k = b.k AND 1 / 0 > 1 AND b.ts = a.ts",
        "SELECT a.k FROM a JOIN b ON a.k + 9223372036854775807 = b.k AND b.ts = a.ts",
        "SELECT a.k FROM a LEFT JOIN b ON a.k = b.k AND b.ts = a.ts AND b.v > 1 / 0",
        "SELECT d.x FROM (SELECT 1 / 0 AS x, ts FROM a) AS d",
        "SELECT d.k FROM (SELECT 1 / 0 AS x, k, ts FROM a) AS d",
        "SELECT a.k FROM a WHERE EXISTS (SELECT 1 / 0 FROM b WHERE b.k = a.k AND b.ts = a.ts)",
    ),
    *of("texts that grow", *(f"SELECT {text} AS x FROM a" for text in GROWING), compares=False),
    *of(
        "casts of constants",
        *(f"SELECT CAST({text} AS {kind}) AS x FROM a" for kind, texts in TEXTS_BY_TYPE.items() for text in texts),
    ),
    *of(
        "decimals out of scale",
        *(
            "SELECT CAST(v AS DECIMAL(0, 0)) AS x FROM a",
            "SELECT CAST(v AS DECIMAL(5, 6)) AS x FROM a",
            "SELECT CAST(v AS DECIMAL(5, -1)) AS x FROM a",
        ),
        *(
            "SELECT m * m * m * m * m * m AS x FROM a",
            "SELECT m / 0.00000000000000000000000000000000000001 AS x FROM a",
        ),
        *(
            "SELECT 99999999999999999999999999999999999999 + m AS x FROM a",
            "SELECT m % 0.0 AS x FROM a",
            "SELECT round(m, -38) AS x FROM a",
        ),
        *(
            "SELECT CAST(m AS DECIMAL(2, 1)) AS x FROM a",
            "SELECT CAST(d AS DECIMAL(38, 37)) AS x FROM a",
            "SELECT CAST(big AS DECIMAL(3, 0)) AS x FROM a",
        ),
        *(
            "SELECT SUM(m * 99999999999999999999999999999) AS x FROM a GROUP BY k",
            "SELECT AVG(CAST(m AS DECIMAL(38, 18))) AS x FROM a GROUP BY k",
        ),
        *(
            "SELECT round(12345678901234567890123456789012345678, -37) AS x FROM a",
            "SELECT ceil(m * 1e30) AS x FROM a",
            "SELECT m = 0.10000000000000000000000000000000000001 AS x FROM a",
        ),
        "SELECT a.k FROM a JOIN b ON a.m * 1000000000000000000000000000.1 = b.m AND b.ts = a.ts",
        "SELECT CAST(99999999.99 AS DECIMAL(10, 2)) * m AS x FROM a WHERE m > 99999999999999.9",
    ),
)
