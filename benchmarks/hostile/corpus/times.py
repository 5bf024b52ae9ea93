"""Time conditions and windows without sense: empty, endless, negative, a thousand windows a row."""

from __future__ import annotations

from benchmarks.hostile.records import of

PAIRS = "SELECT a.k, b.v FROM a JOIN b ON a.k = b.k AND "
LEFT = "SELECT a.k, b.v FROM a LEFT JOIN b ON a.k = b.k AND "

QUERIES = (
    *of(
        "time bounds without sense",
        *(
            PAIRS + text
            for text in (
                "b.ts BETWEEN a.ts + INTERVAL 10 SECONDS AND a.ts - INTERVAL 10 SECONDS",
                "b.ts = a.ts",
                "b.ts > a.ts AND b.ts < a.ts",
                "b.ts <> a.ts",
                "b.ts BETWEEN a.ts - INTERVAL 99999999 DAYS AND a.ts",
                "b.ts BETWEEN a.ts - INTERVAL 99999999999999 DAYS AND a.ts + INTERVAL 99999999999999 DAYS",
                "b.ts >= a.ts + INTERVAL 9223372036854775807 MICROSECONDS",
                "b.ts BETWEEN a.ts - INTERVAL 0 SECONDS AND a.ts + INTERVAL 0 SECONDS",
                "b.ts BETWEEN a.ts + INTERVAL -10 SECONDS AND a.ts - INTERVAL -10 SECONDS",
                "b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 MONTH",
                "b.ts BETWEEN b.ts AND a.ts",
                "a.ts BETWEEN a.ts AND a.ts",
                "b.ts - a.ts < INTERVAL 5 SECONDS",
                "unix_micros(b.ts) - unix_micros(a.ts) BETWEEN 0 AND 5000000",
                "b.ts BETWEEN '2026-01-01' AND a.ts",
                "b.ts BETWEEN NULL AND a.ts",
                "b.ts BETWEEN a.ts AND TIMESTAMP '9999-12-31 23:59:59.999999'",
                "b.ts + INTERVAL 3000000 DAYS > a.ts + INTERVAL 3000000 DAYS",
                "date_trunc('day', b.ts) = date_trunc('day', a.ts)",
                "b.day BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS",
            )
        ),
    ),
    *of(
        "WITHIN without sense",
        *(
            f"SELECT a.k FROM a JOIN b ON a.k = b.k WITHIN {text}"
            for text in (
                "0 SECONDS",
                "-1 SECONDS",
                "99999999999999 DAYS",
                "1 MICROSECOND",
                "x SECONDS",
                "1",
                "",
                "1.5 SECONDS",
                "1 MONTH",
                "SECONDS 1",
                "'10 seconds'",
                "10 SECONDS WITHIN 5 SECONDS",
            )
        ),
        *(
            "SELECT k FROM a WITHIN 10 SECONDS",
            "SELECT a.k FROM a WITHIN 3 SECONDS JOIN b WITHIN -3 SECONDS ON a.k = b.k",
            "SELECT a.k FROM a, b WITHIN 10 SECONDS",
        ),
        compares=False,
    ),
    *of(
        "windows without sense",
        *(
            f"SELECT k, COUNT(*) AS n FROM a GROUP BY k, window(ts, {text})"
            for text in (
                *(
                    "'0 seconds'",
                    "'-5 seconds'",
                    "'1 microsecond'",
                    "'1000000 days'",
                    "'1 month'",
                    "'nonsense'",
                    "''",
                    "NULL",
                    "5",
                    "'5 seconds', '10 seconds'",
                ),
                *(
                    "'1 day', '1 millisecond'",
                    "'10 seconds', '0 seconds'",
                    "'10 seconds', '5 seconds', '-1 second'",
                    "'10 seconds', '5 seconds', '10 days'",
                    "s",
                    "'99999999999 days'",
                ),
            )
        ),
        *(
            "SELECT COUNT(*) AS n FROM a GROUP BY window(day, '1 day')",
            "SELECT COUNT(*) AS n FROM a GROUP BY window(k, '1 day')",
            "SELECT COUNT(*) AS n FROM a GROUP BY window(ts, '5 seconds'), window(ts, '7 seconds')",
        ),
        *(
            "SELECT window(ts, '5 seconds') AS w FROM a",
            "SELECT COUNT(*) AS n FROM a GROUP BY session_window(ts, '5 minutes')",
            "SELECT window.start FROM a",
            "SELECT COUNT(*) AS n FROM a GROUP BY window(window(ts, '1 second'), '2 seconds')",
        ),
        "SELECT MAX(window) AS w FROM a GROUP BY window(ts, '10 seconds')",
        "SELECT COUNT(*) AS n FROM a WHERE window(ts, '1 second').start > ts",
        "SELECT a.k, COUNT(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY a.k, window(a.ts, '10 seconds')",
    ),
    *of(
        "brackets without sense",
        *(
            f"SELECT SUM(v) AS n FROM a [{text}] GROUP BY k"
            for text in (
                "Range 0 seconds",
                "Range 10 seconds, Slide 0 seconds",
                "Range 1 day, Slide 1 millisecond",
                "Slide 5 seconds",
                "",
                "Range -5 seconds",
                "Rows 10",
                "Range 10 seconds, Slide 20 seconds",
                "Range 99999999999 days",
            )
        ),
        "SELECT a.k FROM a [Range 10 seconds], b [Range 20 seconds] WHERE a.k = b.k",
        "SELECT a.k FROM a [Range 1 day, Slide 1 second], b [Range 1 day, Slide 1 second] WHERE a.k = b.k",
        compares=False,
    ),
    *of(
        "outer joins that never decide",
        *(
            LEFT + text
            for text in (
                "b.ts > a.ts",
                "b.ts BETWEEN a.ts AND a.ts + INTERVAL 99999999 DAYS",
                "b.ts BETWEEN a.ts + INTERVAL 5 SECONDS AND a.ts",
                "a.ts < a.ts",
                "TRUE",
            )
        ),
        *(
            "SELECT a.k FROM a LEFT JOIN b ON a.k = b.k",
            "SELECT a.k FROM a FULL JOIN b ON a.k = b.k",
            "SELECT a.k FROM a LEFT ANTI JOIN b ON a.k = b.k",
            "SELECT a.k FROM a LEFT JOIN b ON b.ts = a.ts",
        ),
        *(
            "SELECT a.k FROM a RIGHT SEMI JOIN b ON a.k = b.k",
            "SELECT a.k FROM a WHERE a.k NOT IN (SELECT k FROM b)",
            "SELECT a.k FROM a WHERE a.k IN (SELECT k FROM b) OR a.t",
            "SELECT EXISTS (SELECT 1 FROM b) AS x FROM a",
        ),
        "SELECT a.k FROM a LEFT JOIN b ON a.k = b.k AND b.ts = a.ts LEFT JOIN c ON c.k = a.k AND c.ts = a.ts",
        "SELECT a.k FROM a LEFT JOIN b ON NULL AND b.ts = a.ts",
        "SELECT a.k, b.k AS l FROM a FULL JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts AND 1 = 0",
        compares=False,
    ),
)
