"""Texts that attack the parser: depth, length, odd characters, ends that never come, statements of other systems."""

from __future__ import annotations

from benchmarks.hostile.records import of


def _nested(levels: int, begin: str, middle: str, end: str) -> str:
    return begin * levels + middle + end * levels


def _derived(levels: int) -> str:
    text = "SELECT k, v, ts FROM a"
    for level in range(levels):
        text = f"SELECT k, v, ts FROM ({text}) AS d{level}"
    return text


def _cases(levels: int) -> str:
    return "CASE WHEN v = 1 THEN 0 ELSE " * levels + "1" + " END" * levels


QUERIES = (
    *of(
        "nested parentheses",
        *(f"SELECT {_nested(levels, '(', 'k', ')')} AS x FROM a" for levels in (40, 300, 3_000, 30_000)),
        f"SELECT k FROM a WHERE {_nested(500, '(', 'v = 1', ')')}",
        f"SELECT k FROM {_nested(200, '(', 'a', ')')}",
        f"SELECT k FROM a WHERE {'(' * 5_000}",
        f"SELECT k FROM a WHERE v IN {_nested(800, '(', '1', ')')}",
    ),
    *of(
        "chains of unary operators",
        f"SELECT k FROM a WHERE {'NOT ' * 60}t",
        f"SELECT k FROM a WHERE {'NOT ' * 4_000}t",
        f"SELECT {'- ' * 50}v AS x FROM a",
        f"SELECT {'- ' * 5_000}v AS x FROM a",
        f"SELECT {'+' * 3_000}v AS x FROM a",
        f"SELECT {'~' * 500}v AS x FROM a",
        f"SELECT {'!' * 500}t AS x FROM a",
    ),
    *of(
        "nested calls",
        f"SELECT {_nested(30, 'upper(', 's', ')')} AS x FROM a",
        f"SELECT {_nested(900, 'upper(', 's', ')')} AS x FROM a",
        f"SELECT {_nested(9_000, 'reverse(', 's', ')')} AS x FROM a",
        f"SELECT {_cases(30)} AS x FROM a",
        f"SELECT {_cases(600)} AS x FROM a",
        f"SELECT {_nested(60, 'CAST(', 'v', ' AS BIGINT)')} AS x FROM a",
        f"SELECT {_nested(60, 'coalesce(NULL, ', 'v', ')')} AS x FROM a",
        f"SELECT k FROM a WHERE {_nested(60, 'if(t, ', 't', ', NOT t)')}",
    ),
    *of("nested derived tables", *(_derived(levels) for levels in (10, 60, 400, 2_000))),
    *of(
        "very many terms",
        "SELECT k FROM a WHERE " + " OR ".join(f"v = {i}" for i in range(1_500)),
        "SELECT k FROM a WHERE " + " OR ".join(f"v = {i}" for i in range(20_000)),
        "SELECT k FROM a WHERE " + " AND ".join(f"v <> {i + 10}" for i in range(1_500)),
        "SELECT k FROM a WHERE " + " OR ".join(f"(v = {i} AND s = 's{i}' AND m > {i}.5)" for i in range(400)),
        f"SELECT {' + '.join(['v'] * 3_000)} AS x FROM a",
        f"SELECT {' || '.join(['s'] * 2_000)} AS x FROM a",
        f"SELECT concat({', '.join(['s'] * 3_000)}) AS x FROM a",
        f"SELECT greatest({', '.join(f'v + {i}' for i in range(1_000))}) AS x FROM a",
        f"SELECT CASE {' '.join(f'WHEN v = {i} THEN {i + 1}' for i in range(1_500))} END AS x FROM a",
    ),
    *of(
        "very long IN lists",
        f"SELECT k FROM a WHERE v IN ({', '.join(str(i) for i in range(30_000))})",
        f"SELECT k FROM a WHERE s IN ({', '.join(repr(f's{i}') for i in range(5_000))})",
        f"SELECT k FROM a WHERE d IN ({', '.join(f'{i}.5' for i in range(3_000))})",
        f"SELECT k FROM a WHERE v NOT IN ({', '.join(['NULL'] * 2_000)}, 1)",
        f"SELECT k FROM a WHERE (v, k) IN ({', '.join(f'({i}, {i})' for i in range(500))})",
    ),
    *of(
        "very many columns",
        f"SELECT {', '.join(f'v + {i} AS c{i}' for i in range(800))} FROM a",
        f"SELECT {', '.join('*' for _ in range(200))} FROM a",
        f"SELECT {', '.join(f'k AS c{i}' for i in range(12_000))} FROM a",
        f"SELECT k, {', '.join(f'SUM(v + {i}) AS s{i}' for i in range(150))} FROM a GROUP BY k",
        f"SELECT COUNT(*) AS n FROM a GROUP BY {', '.join(f'v + {i}' for i in range(150))}",
    ),
    *of(
        "giant tokens",
        f"SELECT k FROM a WHERE s = '{'x' * 90_000}'",
        f"SELECT k FROM a WHERE s = '{'x' * 2_000_000}'",
        f"SELECT {'9' * 40} AS x FROM a",
        f"SELECT {'9' * 20_000} AS x FROM a",
        f"SELECT 0.{'0' * 5_000}1 AS x FROM a",
        f"SELECT {'k' * 50_000} FROM a",
        f"SELECT k AS {'x' * 5_000} FROM a",
        f"SELECT k FROM a AS {'y' * 50_000}",
        f"SELECT `{'z' * 50_000}` FROM a",
        "SELECT 1e400 AS x FROM a",
        f"SELECT 1e-{'9' * 400} AS x FROM a",
        f"SELECT k FROM a {' ' * 1_500_000}WHERE t",
    ),
    *of(
        "control characters",
        "SELECT k\x00 FROM a",
        "SELECT k FROM a WHERE s = 'x\x00y'",
        "SELECT `k\x00` FROM a",
        "\x00",
        "SELECT k FROM a\x1a",
        "SELECT\x0bk\x0cFROM\x1ca",
        "SELECT k FROM a WHERE s = '\x1b[2J\x07'",
        "SELECT k AS `a\nb\rc` FROM a",
        "SELECT k AS `\x08\x08` FROM a",
        "SELECT k FROM a WHERE s = '\x7f\x80\x9f'",
    ),
    *of(
        "odd unicode",
        "\uff33\uff25\uff2c\uff25\uff23\uff34 k FROM a",
        "SELECT \u043a FROM a",
        "SELECT k\u200b FROM a",
        "\ufeffSELECT k FROM a",
        "SELECT\u00a0k\u2003FROM\u2028a",
        "SELECT k AS \U0001f600 FROM a",
        "SELECT k AS `\U0001f600\u202e\u0301` FROM a",
        "SELECT k FROM a WHERE s = \u2018x\u2019",
        "SELECT k FROM a WHERE s = '\ud800'",
        "SELECT `\udfff` FROM a",
        "SELECT k FROM a WHERE s = '" + "e\u0301" * 2_000 + "'",
        "SELECT k FROM a WHERE s LIKE '%\u0130\u00df\u01c5%' AND upper(s) = lower(s)",
        "SELECT upper('\u0149\ufb03'), lower('\u0130\u03a3'), length('\U0001f468\u200d\U0001f469'), reverse('a\u0301') FROM a",
        "SELECT k FROM a WHERE s = '\\u0000\\uD800'",
        "SELECT \u0661 AS x FROM a",
    ),
    *of(
        "comments",
        "SELECT k FROM a /* never ends",
        "SELECT k /* a /* b */ c */ FROM a",
        "SELECT /*+ BROADCAST(a), REPARTITION(1000000) */ k FROM a",
        f"SELECT k /*{'*' * 80_000}*/ FROM a",
        "SELECT k FROM a -- the end",
        "SEL/**/ECT k FROM a",
        "-- only this",
        "/**/",
        f"SELECT k {'/* x */ ' * 8_000}FROM a",
        "SELECT k FROM a --\\\nWHERE nonsense",
        "SELECT k -- \u2028 , nonsense\nFROM a",
        "# SELECT k FROM a",
        "SELECT k FROM a WHERE s = '--' OR s = '/*' OR s = '*/'",
    ),
    *of(
        "texts that stop short",
        *("", " \n\t ", ";", ";;;", "SELECT", "SELECT k", "SELECT k FROM", "SELECT k FROM a WHERE", "SELECT FROM a"),
        *("SELECT k FROM a WHERE s = 'x", "SELECT `k FROM a", 'SELECT "k FROM a', "SELECT k FROM a WHERE (v = 1"),
        *("SELECT k FROM a)", "SELECT k,, v FROM a", "SELECT k, FROM a", "SELECT k FROM a WHERE v = 1 AND"),
        *("SELECT CASE WHEN t THEN 1 FROM a", "SELECT CAST(v AS) FROM a", "SELECT CAST(v INT) FROM a"),
        *("SELECT k FROM a JOIN b ON", "SELECT k FROM a JOIN", "SELECT a.k FROM a JOIN b USING k", "FROM a SELECT k"),
        *("SELECT k FROM a GROUP BY", "SELECT k FROM a ORDER", "SELECT * * FROM a", "SELECT k k k FROM a"),
        *("SELECT .k FROM a", "SELECT a. FROM a", "SELECT a..k FROM a", "SELECT 1.2.3 FROM a", "SELECT k FROM .a"),
    ),
    *of(
        "statements of another kind",
        *("DROP TABLE a", "DELETE FROM a", "INSERT INTO a VALUES (1)", "UPDATE a SET k = 1", "TRUNCATE TABLE a"),
        *("SELECT k FROM a; DROP CONTINUOUS QUERY pairs", "SET spark.sql.ansi.enabled = false", "ADD JAR '/tmp/x.jar'"),
        *("CREATE FUNCTION f AS 'x.Y'", "CALL sys.rollback()", "CACHE TABLE a", "USE other", "EXPLAIN SELECT k FROM a"),
        *("SHOW QUERIES", "CREATE CONTINUOUS QUERY x AS SELECT k FROM a", "EXECUTE IMMEDIATE 'SELECT 1'", "BEGIN; END"),
        *("DROP CONTINUOUS QUERY pairs", "LOAD DATA INPATH '/etc/passwd' INTO TABLE a", "MERGE INTO a USING b ON 1=1"),
        *("TABLE a", "VALUES (1), (2)", "WITH x AS (SELECT k FROM a) SELECT k FROM x", "REFRESH TABLE a"),
        "WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM x) SELECT n FROM x",
        "SELECT k FROM a UNION ALL SELECT k FROM b",
        "SELECT k FROM a INTERSECT SELECT k FROM b",
        "SELECT TRANSFORM(k) USING 'cat /etc/passwd' AS (x STRING) FROM a",
        "FROM a INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT k",
    ),
    *of(
        "placeholders and templates",
        *("SELECT ${k} FROM a", "SELECT {{k}} FROM a", "SELECT k FROM a WHERE v = ?", "SELECT k FROM a WHERE v = :x"),
        *("SELECT k FROM a WHERE v = $1", "SELECT %s FROM a", "SELECT @k FROM a", "SELECT k FROM IDENTIFIER('a')"),
        *(
            "SELECT `${env:HOME}` FROM a",
            "SELECT k FROM a WHERE s = '${env:HOME}'",
            "SELECT k FROM a WHERE s = '%(x)s'",
        ),
        *(
            "SELECT k FROM a WHERE s = '{0.__class__}'",
            "SELECT k FROM a WHERE s = ' OR 1=1 --'",
            "SELECT {% k %} FROM a",
        ),
    ),
)
