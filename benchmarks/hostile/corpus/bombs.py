"""Texts whose values, rows or answers fill the memory, although each part is small."""

from __future__ import annotations

from benchmarks.hostile.corpus.bind import NEAR
from benchmarks.hostile.records import of


def _doubling(levels: int) -> str:
    """A value that doubles with every derived table: 2 to the power of `levels` copies from a short text."""
    text = "SELECT k, s || 'x' AS x, ts FROM a"
    for level in range(levels):
        text = f"SELECT k, x || x AS x, ts FROM ({text}) AS d{level}"
    return text


def _sums(levels: int) -> str:
    text = "SELECT k, v AS x, ts FROM a"
    for level in range(levels):
        text = f"SELECT k, x + x AS x, ts FROM ({text}) AS d{level}"
    return text


def _self_made(levels: int) -> str:
    text = "SELECT s AS x0, ts FROM a"
    for level in range(levels):
        text = (
            f"SELECT replace(x{level}, substr(x{level}, 1, 1), x{level}) AS x{level + 1}, ts FROM ({text}) AS d{level}"
        )
    return text


QUERIES = (
    *of(
        "values that double",
        *(_doubling(levels) for levels in (8, 16, 26, 40)),
        *(_sums(levels) for levels in (12, 28)),
        _self_made(6),
        compares=False,
    ),
    *of(
        "long values of every row",
        *(
            "SELECT rpad(s, 15000000, 'x') AS x FROM a",
            "SELECT repeat(odd, 100000) AS x FROM a",
            "SELECT repeat(s, v * 1000000) AS x FROM a",
            "SELECT lpad(s, 2000000, odd) AS x FROM a",
        ),
        *(
            "SELECT k FROM a WHERE length(rpad(s, 16000000, 'x')) > 5",
            "SELECT k FROM a WHERE rpad(s, 5000000, 'x') = rpad(odd, 5000000, 'x')",
            "SELECT concat(rpad(s, 900000, 'x'), rpad(s, 900000, 'y')) AS x FROM a",
        ),
        *(
            "SELECT replace(rpad(s, 10000, 'x'), 'x', 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy') AS x FROM a",
            "SELECT upper(repeat('\u0149', 5000000)) || s AS x FROM a",
            "SELECT repeat(s, CAST(big AS INT)) AS x FROM a WHERE big BETWEEN 0 AND 9",
        ),
        compares=False,
    ),
    *of(
        "wide rows of long values",
        f"SELECT {', '.join(f'rpad(s, {20_000 + i}, odd) AS c{i}' for i in range(60))} FROM a",
        f"SELECT {', '.join(f'repeat(s, {1_000 + i}) AS c{i}' for i in range(300))} FROM a",
        f"SELECT {', '.join(f'rpad(s, 100000, CAST({i} AS STRING)) AS c{i}' for i in range(20))} FROM a WHERE v > 0",
        f"SELECT {', '.join(f'd.x AS c{i}' for i in range(400))} FROM (SELECT rpad(s, 10000, odd) AS x FROM a) AS d",
        compares=False,
    ),
    *of(
        "pairs with long values",
        f"SELECT rpad(a.s, 100000, b.s) AS x FROM a JOIN b ON a.v = b.v AND {NEAR}",
        f"SELECT repeat(a.s || b.s, 50000) AS x FROM a JOIN b ON a.k = b.k AND {NEAR}",
        f"SELECT a.k FROM a JOIN b ON a.k = b.k AND rpad(a.s, 500000, 'x') || b.s LIKE '%y' AND {NEAR}",
        f"SELECT x.l FROM (SELECT k, rpad(s, 200000, 'x') AS l, ts FROM a) AS x JOIN b ON x.k = b.k AND {NEAR.replace('a.', 'x.')}",
        "SELECT x.l || y.l AS z FROM (SELECT k, rpad(s, 100000, 'x') AS l, ts FROM a) AS x JOIN (SELECT k, rpad(s, 100000, 'y') AS l, ts FROM b) AS y ON x.k = y.k AND y.ts = x.ts",
        f"SELECT a.k, MAX(rpad(b.s, 300000, a.s)) AS x FROM a JOIN b ON a.k = b.k AND {NEAR} GROUP BY a.k",
        f"SELECT COUNT(DISTINCT rpad(a.s, 50000, CAST(b.ts AS STRING))) AS x FROM a JOIN b ON a.k = b.k AND {NEAR}",
        compares=False,
    ),
    *of(
        "texts of a hundred thousand computations",
        f"SELECT {' + '.join(f'(v + {i}) * (v - {i})' for i in range(1_200))} AS x FROM a",
        f"SELECT k FROM a WHERE {' AND '.join(f'length(repeat(s, {i % 50})) >= 0' for i in range(800))}",
        f"SELECT {', '.join(f'upper(reverse(lower(s))) || {i} AS c{i}' for i in range(400))} FROM a",
        f"SELECT {', '.join(f'CASE WHEN v = {i} THEN CAST(odd AS INT) END AS c{i}' for i in range(7, 300))} FROM a",
        f"SELECT k FROM a WHERE {' OR '.join(f's RLIKE {chr(39)}x{i}.*y$' + chr(39) for i in range(500))}",
        f"SELECT k FROM a WHERE {' OR '.join(f's LIKE {chr(39)}%x{i}%y%{chr(39)}' for i in range(800))}",
    ),
)
