"""Random cases through the whole engine in one process: the streamed answers are those of batch SQL.

DOVETAIL_CASES sets how many, DOVETAIL_SEED where they begin. A failure prints its seed and leaves its
smallest form in tests/seeds, where `test_kept_failures` finds it from then on.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from dovetail.testing.asserts import assert_same_answers, check_case, check_seeds, kept_cases, run_case
from dovetail.testing.cases import EngineCase
from dovetail.testing.generators import (
    CaseLimits,
    engine_cases,
    nothing_late,
    one_query_cases,
    random_case,
    split_again,
)
from dovetail.testing.random_queries import QueryLimits

CASE_COUNT = int(os.environ.get("DOVETAIL_CASES", "1000"))
FIRST_SEED = int(os.environ.get("DOVETAIL_SEED", "0"))
CHUNKS = 20
SEEDS_DIR = Path(__file__).parent.parent / "seeds"
KEPT = kept_cases(SEEDS_DIR)


def seeds_of(chunk: int, case_count: int) -> range:
    return range(FIRST_SEED + chunk, FIRST_SEED + case_count, CHUNKS)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_streamed_answers_are_those_of_batch_sql(chunk: int) -> None:
    check_seeds(seeds_of(chunk, CASE_COUNT), random_case, SEEDS_DIR)


LONG_RUNS = CaseLimits(max_batches=25, max_rows=4, max_queries=4, queries=QueryLimits(3, full_history=False))


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_long_runs_that_merge_and_expire_stay_exact(chunk: int) -> None:
    seeds = seeds_of(chunk, CASE_COUNT // 10)
    check_seeds(seeds, lambda seed: random_case(seed, LONG_RUNS), SEEDS_DIR)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_query_answers_the_same_alone_and_among_others(chunk: int) -> None:
    for seed in seeds_of(chunk, CASE_COUNT // 10):
        case = random_case(seed, CaseLimits(late_queries=False))
        together = run_case(case).runs
        for alone in one_query_cases(case):
            (query,) = alone.queries
            about = f"seed {seed}, {query.name} alone and among others: {query.sql}"
            assert_same_answers(run_case(alone).runs[query.name].answers, together[query.name].answers, about)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_order_of_arrival_and_batch_splits_change_no_answer(chunk: int) -> None:
    for seed in seeds_of(chunk, CASE_COUNT // 10):
        case = nothing_late(random_case(seed))
        runs = check_case(case).runs
        runs_again = run_case(split_again(Random(seed), case)).runs
        for query in case.queries:
            about = f"seed {seed}, {query.name} with the rows in other batches: {query.sql}"
            assert_same_answers(runs_again[query.name].answers, runs[query.name].answers, about)


@settings(max_examples=60, suppress_health_check=list(HealthCheck), phases=[Phase.generate, Phase.shrink])
@given(case=engine_cases(CaseLimits(max_streams=3, max_batches=4, max_queries=3, max_rows=5)))
def test_cases_drawn_by_hypothesis_hold(case: EngineCase) -> None:
    check_case(case)


@pytest.mark.parametrize("name", KEPT)
def test_kept_failures_stay_fixed(name: str) -> None:
    check_case(KEPT[name])
