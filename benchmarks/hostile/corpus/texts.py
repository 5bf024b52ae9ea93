"""Patterns: regular expressions and LIKE, broken, explosive or taken from rows."""

from __future__ import annotations

from benchmarks.hostile.records import of


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


BROKEN = (
    *(
        "(",
        ")",
        "[",
        "[z-a]",
        "*a",
        "+",
        "?",
        "a**",
        "a{2000}",
        "a{2,1}",
        "a{-1}",
        "a{99999999999}",
        "\\",
        "[[:nope:]]",
        "(?P<x",
    ),
    *(
        "(?<n>a)(?<n>b)",
        "\\p{Nope}",
        "[a",
        "(?z)a",
        "a{1000}{1000}",
        "\\Q",
        "(?<!a*)b",
        "\\x{FFFFFFFF}",
        "\\u00",
        "\\c",
    ),
)
EXPLOSIVE = (
    *(
        "(a+)+$",
        "(a|aa)+$",
        "(.*)*x",
        "([a-z]+)*!",
        "(a*)*b",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "(x+x+)+y",
        "(.?){40}.{40}",
    ),
    *(
        "(a{1,100}){1,10}b",
        ".*.*.*.*.*.*.*.*=.*",
        "(a?){60}a{60}",
        "\\w*\\d*\\w*\\d*\\w*\\d*z",
        "(?:(?:a{0,30}){0,30})b",
    ),
)
JAVA_ONLY = (
    *(
        "(?=a)a",
        "(?!a)b",
        "(?<=a)b",
        "(a)\\1",
        "a++",
        "(?>a+)b",
        "\\bx\\B",
        "\\G",
        "\\R",
        "\\h",
        "[a-z&&[^x]]",
        "(?x) a b",
    ),
    *(
        "\\p{javaLowerCase}",
        "\\p{IsGreek}",
        "\\Z",
        "\\z",
        "\\0101",
        "[\\w-\\d]",
        "(?i)\u0130",
        "(?s).",
        "(?u)\\w",
        "\\k<x>",
    ),
)

QUERIES = (
    *of("broken regular expressions", *(f"SELECT k FROM a WHERE s RLIKE {_quoted(pattern)}" for pattern in BROKEN)),
    *of(
        "explosive regular expressions",
        *(f"SELECT k FROM a WHERE repeat('a', 40) || s RLIKE {_quoted(pattern)}" for pattern in EXPLOSIVE),
        "SELECT k FROM a WHERE rpad(s, 100000, 'a') RLIKE '(a|a|a|a)*b'",
        f"SELECT k FROM a WHERE s RLIKE '{'|'.join(f'w{i}x*' for i in range(3_000))}'",
        f"SELECT k FROM a WHERE s RLIKE '{'(' * 900}a{')' * 900}'",
        f"SELECT k FROM a WHERE s RLIKE '{'a?' * 3_000}{'a' * 3_000}'",
        f"SELECT k FROM a WHERE s RLIKE '[{''.join(chr(c) for c in range(0x4E00, 0x6000, 2))}]'",
        compares=False,
    ),
    *of(
        "regular expressions of Java alone",
        *(f"SELECT k FROM a WHERE s RLIKE {_quoted(pattern)}" for pattern in JAVA_ONLY),
    ),
    *of(
        "patterns from rows",
        *(
            "SELECT k FROM a WHERE s RLIKE odd",
            "SELECT k FROM a WHERE odd RLIKE s",
            "SELECT k FROM a WHERE regexp_like(odd, odd)",
        ),
        *(
            "SELECT k FROM a WHERE s LIKE odd",
            "SELECT k FROM a WHERE odd LIKE odd",
            "SELECT k FROM a WHERE s RLIKE concat('(', s)",
        ),
        *("SELECT k FROM a WHERE s RLIKE repeat(s, v)", "SELECT k FROM a WHERE s RLIKE CAST(v AS STRING)"),
        "SELECT a.k FROM a JOIN b ON a.s RLIKE b.odd AND b.ts = a.ts",
        "SELECT a.k FROM a JOIN b ON a.odd LIKE b.odd AND b.ts = a.ts",
    ),
    *of(
        "odd LIKE patterns",
        f"SELECT k FROM a WHERE s LIKE '{'%a' * 300}'",
        f"SELECT k FROM a WHERE rpad(s, 5000, 'a') LIKE '{'%a' * 60}%b'",
        f"SELECT k FROM a WHERE s LIKE '{'_' * 50_000}'",
        *(
            "SELECT k FROM a WHERE s LIKE '\\\\'",
            "SELECT k FROM a WHERE s LIKE '%\\\\'",
            "SELECT k FROM a WHERE s LIKE '\\\\x'",
        ),
        *("SELECT k FROM a WHERE s LIKE '%' ESCAPE '%'", "SELECT k FROM a WHERE s LIKE 'x!' ESCAPE '!'"),
        *(
            "SELECT k FROM a WHERE s LIKE 'x' ESCAPE ''",
            "SELECT k FROM a WHERE s LIKE 'x' ESCAPE 'ab'",
            "SELECT k FROM a WHERE s LIKE ''",
        ),
        *(
            "SELECT k FROM a WHERE s LIKE ANY ('x%', 'y%')",
            "SELECT k FROM a WHERE s ILIKE '%X%'",
            "SELECT k FROM a WHERE s SIMILAR TO 'x'",
        ),
        *(
            "SELECT k FROM a WHERE odd LIKE '%\\n%'",
            "SELECT k FROM a WHERE odd LIKE '.*[('",
            "SELECT k FROM a WHERE v LIKE 1",
        ),
        *(
            "SELECT k FROM a WHERE ts LIKE '2026%'",
            "SELECT k FROM a WHERE s LIKE s || '%'",
            "SELECT k FROM a WHERE NOT s NOT LIKE '%'",
        ),
    ),
)
