"""The three queries of AJoin's Figure 1. The same text runs on Spark batch SQL."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DemoQuery:
    """A query, who asks it, and the join as the paper writes it."""

    name: str
    about: str
    join: str
    sql: str


Q1 = DemoQuery(
    "Q1",
    "video preferences",
    "V ⋈ W",
    """
    SELECT W.usr_id, V.vid, V.length, W.duration, W.ts
    FROM videos V
    JOIN views W ON V.vid = W.vid AND W.ts BETWEEN V.ts AND V.ts + INTERVAL 4 SECONDS
    WHERE V.lang = 'ENG' AND W.geo = 'GER'
    """,
)
Q2 = DemoQuery(
    "Q2",
    "troll armies",
    "V ⋈ W ⋈ C",
    """
    SELECT W.usr_id, V.vid, W.duration, C.comment, C.ts
    FROM videos V
    JOIN views W ON W.vid = V.vid AND W.ts BETWEEN V.ts AND V.ts + INTERVAL 4 SECONDS
    JOIN comments C ON W.usr_id = C.usr_id AND C.ts BETWEEN W.ts AND W.ts + INTERVAL 4 SECONDS
    WHERE C.length > 5 AND V.geo = 'US' AND W.duration < 10
    """,
)
Q3 = DemoQuery(
    "Q3",
    "angry reactions",
    "W ⋈ C ⋈ R",
    """
    SELECT W.usr_id, W.vid, C.comment, R.reaction, R.ts
    FROM views W
    JOIN comments C ON W.usr_id = C.usr_id AND C.ts BETWEEN W.ts AND W.ts + INTERVAL 4 SECONDS
    JOIN reactions R ON W.usr_id = R.usr_id AND R.ts BETWEEN W.ts AND W.ts + INTERVAL 4 SECONDS
    WHERE W.geo = 'EU' AND R.reaction = 'angry' AND C.emojis > 0
    """,
)
QUERIES = (Q1, Q2, Q3)
