"""The two oracles check each other, and through that how the front end understands SQL."""

from __future__ import annotations

import pytest

from dovetail.frontend.compile_sql import compile_sql
from tests.support.asserts import assert_same_answers
from tests.support.generators.cases import CLOSING_GROUPS, GROUPS, CaseLimits, random_case
from tests.support.keep_failures import seeds_of
from tests.support.oracles.answers import DuckDbOracle, NestedLoopOracle

CHUNKS = 2
SHARE = 0.05


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_nested_loops_over_the_bound_query_agree_with_duckdb_on_its_text(chunk: int) -> None:
    for seed in seeds_of(chunk, CHUNKS, SHARE):
        case = random_case(seed)
        by_loops, by_duckdb = NestedLoopOracle(case), DuckDbOracle(case)
        streams = {stream.name: stream.stream for stream in case.streams}
        batch_count = len(case.batches)
        for query in case.queries:
            bound = compile_sql(query.sql, streams)
            about = f"seed {seed}, {query.name}: {query.sql}"
            assert_same_answers(
                by_loops.answers(bound, 0, batch_count), by_duckdb.answers(query.duckdb_sql, 0, batch_count), about
            )


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("limits", [GROUPS, CLOSING_GROUPS], ids=["groups", "closing_groups"])
def test_groups_of_nested_loops_agree_with_duckdb(limits: CaseLimits, chunk: int) -> None:
    for seed in seeds_of(chunk, CHUNKS, SHARE):
        case = random_case(seed, limits)
        by_loops, by_duckdb = NestedLoopOracle(case), DuckDbOracle(case)
        streams = {stream.name: stream.stream for stream in case.streams}
        for query in case.queries:
            bound = compile_sql(query.sql, streams)
            if bound.aggregation is None:
                continue
            for until in (1, len(case.batches)):
                about = f"seed {seed}, {query.name} before batch {until}: {query.sql}\n{query.duckdb_sql}"
                assert_same_answers(by_loops.groups(bound, 0, 0, until), by_duckdb.groups(query, bound, until), about)
