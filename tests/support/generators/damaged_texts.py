"""Queries whose text has been damaged a little: a word less, a word twice, two words swapped, a word from elsewhere."""

from __future__ import annotations

import re
from random import Random

TEXTS = (
    "SELECT a.x, b.* FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL 5 SECONDS AND a.ts",
    "SELECT CASE WHEN a.x > 1.5 THEN upper(a.s) ELSE 'z' END AS y FROM a, b WHERE a.k = b.k AND NOT a.s LIKE 'a%'",
    "SELECT p.w.start FROM (SELECT k, window(ts, '4 seconds') AS w FROM a WHERE ok) p JOIN b ON p.k = b.k",
    "SELECT CAST(a.price AS DECIMAL(12, 3)) c, -a.x % 7 + 1e2 AS e FROM a JOIN b USING (k) WHERE a.x IN (1, NULL, 3)",
    "SELECT a.dt + 1 AS t, a.ts - b.ts < INTERVAL '1 02:03:04' DAY TO SECOND AS q FROM a JOIN b ON a.k <=> b.k",
    "SELECT a.x + 1 AS y, COUNT(*), SUM(b.price) / MAX(b.x) AS r FROM a JOIN b ON a.k = b.k GROUP BY y HAVING r > 1.5",
    "SELECT window.start, COUNT(DISTINCT x, s) FROM a WHERE ok GROUP BY window(ts, '4 seconds'), k",
    "SELECT DISTINCT x, s FROM a WHERE x IS NOT NULL AND s RLIKE 'a+' OR NOT ok",
    "SELECT a.k FROM a LEFT ANTI JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND",
    "SELECT k, x FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k) AND dt > DATE '2024-01-01' AND d < 1.5D",
    "SELECT substring(s, 1, 2) AS u, trim(BOTH 'x' FROM s) AS t, x::STRING, 5L AS l, 2BD AS d FROM a WHERE s <> ''",
    "SELECT extract(YEAR FROM ts) AS y, NOT ok AS o, s IS NULL AS n FROM a WHERE x NOT BETWEEN 1 AND 2 OR ! ok",
    "SELECT a.k, if(a.ok, 1, 0) AS i, coalesce(b.x, 0) FROM a FULL OUTER JOIN b ON a.k = b.k AND a.ts = b.ts",
)
"""Queries that both Dovetail and Spark read."""

_WORDS = re.compile(r"'[^']*'|\d[\w.]*|\w+|<=>|<>|::|\S")
_SPARE_WORDS = """
    ( ) , , . * ' NULL SELECT FROM INTERVAL NOT AND OR 1 '' window AS JOIN ON :: [ ] IS BETWEEN LIKE ` WHERE
    HAVING ; -- /* */ = == != <> <=> < > + - % / || DIV IN USING DISTINCT ALL COUNT( SUM( CASE WHEN THEN ELSE
    END CAST( DATE TIMESTAMP TRUE 1.5 1e400 1e-400 .5 5. 1.e5 0x1F 1_000 12abc 1L 3S 99999999999999999999 1.5F
    2D 1e5BD "a" 'b' r'x' X'1F' a b k x s a.x b.k `x` $1 ? :p @v # & | ^ ~ ! { } \\ INNER LEFT OUTER SEMI ANTI
    CROSS FULL ESCAPE ANY SOME EXISTS ORDER LIMIT UNION GROUP BY FILTER OVER ROWS SECOND SECONDS TO YEAR
    DECIMAL( INT STRING TABLE VALUES LATERAL ILIKE REGEXP RLIKE SIMILAR GLOB ISNULL NOTNULL UNKNOWN NULLS FIRST
    ASC DESC COLLATE AT ZONE TRY_CAST( SAFE => -> := ONLY FINAL QUALIFY TOP RECURSIVE WITH STRAIGHT_JOIN NATURAL
    ASOF POSITIONAL IF PRIMARY 1e3-5 1e0+1e0 1e 1e+x 1e-5x 1.5x 1e5.5 .5e1 -.5 x.5 1BD ->> #>
"""
_SPARE = _SPARE_WORDS.split()


def damaged_text(rng: Random) -> str:
    """One of the texts after one to three changes."""
    words = _WORDS.findall(rng.choice(TEXTS))
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        place = rng.randrange(len(words))
        change = rng.random()
        if change < 0.2:
            del words[place]
        elif change < 0.35:
            words.insert(place, words[place])
        elif change < 0.45:
            other = rng.randrange(len(words))
            words[place], words[other] = words[other], words[place]
        elif change < 0.75:
            words.insert(place, rng.choice(_SPARE))
        else:
            words[place] = rng.choice(_SPARE)
        words = words or ["SELECT"]
    # Without blanks words run into each other, and numbers into signs and names.
    return rng.choice([" ", " ", "\n"]).join(words) if rng.random() < 0.8 else _some_blanks(words, rng)


def _some_blanks(words: list[str], rng: Random) -> str:
    return "".join(word + rng.choice([" ", " ", " ", ""]) for word in words)
