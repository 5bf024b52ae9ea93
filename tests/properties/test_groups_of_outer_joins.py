"""Groups over outer, semi and anti joins: lone rows are counted once they are decided, like all other joined rows."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.support.asserts import assert_same_answers, open_session
from tests.support.cases import COPIES, EngineCase, QueryCase, Row, StreamCase, moment_of
from tests.support.generators.cases import START_US
from tests.support.generators.outer_cases import flushed
from tests.support.generators.queries import SECOND
from tests.support.keep_failures import seeds_of
from tests.support.oracles.answers import DuckDbOracle, answers_of_table

COLUMNS = (("k", "int"), ("x", "int"), ("ts", "timestamp"))
ON = "a.k = b.k AND a.x <> 3 AND b.ts BETWEEN a.ts - INTERVAL 2 SECONDS AND a.ts + INTERVAL 3 SECONDS"
OLD = "TIMESTAMP '2024-01-02 00:00:00'"
"""The last batch, which decides all others, is of a later day and left out."""

QUERIES = (
    f"""SELECT a.k, COUNT(*) AS n, COUNT(b.x) AS m, SUM(b.x) AS s FROM a LEFT JOIN b ON {ON} WHERE a.ts < {OLD}
        GROUP BY a.k""",
    f"SELECT b.k, COUNT(*) AS n, MIN(a.x) AS m FROM a RIGHT JOIN b ON {ON} WHERE b.ts < {OLD} GROUP BY b.k",
    f"""SELECT COUNT(*) AS n, COUNT(a.x) AS m, COUNT(DISTINCT b.x) AS d FROM a FULL JOIN b ON {ON}
        WHERE coalesce(a.ts, b.ts) < {OLD}""",
    f"SELECT COUNT(*) AS n, SUM(a.x) AS s FROM a LEFT SEMI JOIN b ON {ON} WHERE a.ts < {OLD}",
    f"SELECT k, COUNT(*) AS n FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE {ON}) AND a.ts < {OLD} GROUP BY k",
    f"SELECT DISTINCT a.k, b.k AS bk FROM a LEFT JOIN b ON {ON} WHERE a.ts < {OLD}",
)
WINDOWED = (
    "SELECT a.k, COUNT(*) AS n, COUNT(b.x) AS m FROM a LEFT JOIN b ON {on} WHERE a.ts < {old} GROUP BY a.k, {window}",
    "SELECT COUNT(*) AS n, SUM(a.x) AS s FROM a LEFT ANTI JOIN b ON {on} WHERE a.ts < {old} GROUP BY {window}",
    "SELECT COUNT(*) AS n, SUM(a.x) AS s FROM a LEFT SEMI JOIN b ON {on} WHERE a.ts < {old} GROUP BY {window}",
)


def rows(rng: Random, batch: int) -> tuple[Row, ...]:
    return tuple(
        (
            rng.choice([None, 1, 2, 3, 4]),
            rng.randint(0, 5),
            rng.choice([moment_of(START_US + batch * 2 * SECOND + rng.randint(-2, 3) * SECOND)] * 9 + [None]),
        )
        for _ in range(rng.randint(0, 6))
    )


def random_groups(seed: int) -> EngineCase:
    rng = Random(seed)
    streams = tuple(StreamCase(name, COLUMNS, "ts", rng.choice([0, 1, 3]) * SECOND) for name in "ab")
    batches = tuple({name: rows(rng, batch) for name in "ab"} for batch in range(rng.randint(2, 8)))
    texts = [(text, text.replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI")) for text in QUERIES]
    for template in WINDOWED:
        text = template.format(on=ON, old=OLD, window="window(a.ts, '4 seconds')")
        spelled_out = template.format(on=ON, old=OLD, window="epoch_us(a.ts) // 4000000")
        texts.append((text, spelled_out.replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI")))
    queries = tuple(QueryCase(f"q{place}", text, text, duckdb) for place, (text, duckdb) in enumerate(texts))
    partitions, splits, copies = rng.choice([1, 2, 3]), rng.choice([1, 2]), rng.choice(COPIES)
    return flushed(EngineCase(streams, batches, queries, partitions=partitions, splits=splits, copies=copies))


@pytest.mark.parametrize("seed", seeds_of(0, 1, 0.01))
def test_groups_count_lone_and_matched_rows_like_batch_sql(tmp_path: Path, seed: int) -> None:
    case = random_groups(seed)
    session = open_session(case, tmp_path)
    for query in case.queries:
        session.create_query(query.sql, query.name)
    for batch in range(len(case.batches)):
        session.push(case.tables(batch), splits=case.splits)
    oracle = DuckDbOracle(case)
    for query in case.queries:
        expected = oracle.answers(query.duckdb_sql, 0, len(case.batches))
        assert_same_answers(answers_of_table(session.results(query.name)), expected, f"seed {seed}: {query.sql}")
    session.close()
