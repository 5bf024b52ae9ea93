"""Random scenarios through the whole engine in one process: the streamed answers are those of batch SQL.

What is asked, how it is planned, routed, placed and shipped, which limits hold, and what happens meanwhile (crashes,
retries, restarts, streams that come later or fall silent, units that come and go) is drawn together in every case.

DOVETAIL_CASES sets how many, DOVETAIL_SEED where they begin; without it they begin elsewhere with every commit. A
failure prints its seed and leaves its smallest form in tests/seeds, where `test_kept_failures_stay_fixed` finds it.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.support.asserts import assert_same_answers, check_case, run_case
from tests.support.generators.cases import GROUPS, CaseLimits, nothing_late, one_query_cases, random_case, split_again
from tests.support.generators.scenarios import random_scenario
from tests.support.keep_failures import SEEDS_DIR, case_count, check_seeds, first_seed, kept_scenarios, seeds_of
from tests.support.run_scenario import check_scenario

CHUNKS = 16
MANY = 15
"""So many times the cases of `make test` are drawn by `make test-all`."""
KEPT = kept_scenarios(SEEDS_DIR)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_answers_are_those_of_batch_sql(chunk: int) -> None:
    check_seeds(seeds_of(chunk, CHUNKS), random_scenario, SEEDS_DIR)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS * MANY))
def test_answers_of_many_more_are_those_of_batch_sql(chunk: int) -> None:
    later = first_seed() + case_count()
    check_seeds(range(later + chunk, later + case_count(MANY), CHUNKS * MANY), random_scenario, SEEDS_DIR)


@pytest.mark.parametrize("name", KEPT)
def test_kept_failures_stay_fixed(name: str) -> None:
    check_scenario(KEPT[name])


@pytest.mark.parametrize("chunk", range(2))
def test_a_query_answers_the_same_alone_and_among_others(chunk: int) -> None:
    for seed in seeds_of(chunk, 2, 0.02):
        case = random_case(seed, CaseLimits(late_queries=False))
        together = run_case(case).runs
        for alone in one_query_cases(case):
            (query,) = alone.queries
            about = f"seed {seed}, {query.name} alone and among others: {query.sql}"
            assert_same_answers(run_case(alone).runs[query.name].answers, together[query.name].answers, about)


@pytest.mark.parametrize("limits", [CaseLimits(), GROUPS], ids=["rows", "groups"])
def test_order_of_arrival_and_batch_splits_change_no_answer(limits: CaseLimits) -> None:
    for seed in seeds_of(0, 1, 0.03):
        case = nothing_late(random_case(seed, limits))
        runs = check_case(case).runs
        runs_again = run_case(split_again(Random(seed), case)).runs
        for query in case.queries:
            about = f"seed {seed}, {query.name} with the rows in other batches: {query.sql}"
            assert_same_answers(runs_again[query.name].answers, runs[query.name].answers, about)
