"""Random cases through the whole engine in one process: the streamed answers are those of batch SQL.

DOVETAIL_CASES sets how many, DOVETAIL_SEED where they begin. A failure prints its seed and leaves its
smallest form in tests/seeds, where `test_kept_failures_stay_fixed` finds it from then on.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.support.asserts import assert_same_answers, check_case, check_seeds, kept_cases, run_case
from tests.support.cases import EngineCase
from tests.support.colliding_keys import let_keys_collide
from tests.support.generators.cases import (
    CHAINS,
    DEFAULT_LIMITS,
    LATE_SIBLINGS,
    LONE_WINDOWS,
    LONG_RUNS,
    THETA_CHAINS,
    THETAS,
    CaseLimits,
    engine_cases,
    nothing_late,
    one_query_cases,
    random_case,
    split_again,
)

CASE_COUNT = int(os.environ.get("DOVETAIL_CASES", "600"))
FIRST_SEED = int(os.environ.get("DOVETAIL_SEED", "0"))
CHUNKS = 10
SEEDS_DIR = Path(__file__).parent.parent / "seeds"
KEPT = kept_cases(SEEDS_DIR)


def seeds_of(chunk: int, share: float) -> range:
    """Every tenth seed of `share` of all cases, so that workers can divide them."""
    return range(FIRST_SEED + chunk, FIRST_SEED + int(CASE_COUNT * share), CHUNKS)


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize(
    ("limits", "share"),
    [
        (DEFAULT_LIMITS, 1.0),
        (LONG_RUNS, 0.1),
        (LONE_WINDOWS, 0.3),
        (LATE_SIBLINGS, 0.2),
        (CHAINS, 0.3),
        (THETAS, 0.4),
        (THETA_CHAINS, 0.2),
    ],
    ids=["everything", "long_runs", "lone_windows", "late_siblings", "chains", "thetas", "theta_chains"],
)
def test_streamed_answers_are_those_of_batch_sql(limits: CaseLimits, share: float, chunk: int) -> None:
    check_seeds(seeds_of(chunk, share), lambda seed: random_case(seed, limits), SEEDS_DIR)


def test_queries_that_come_late_use_what_others_have_stored() -> None:
    reaching_back = 0
    for seed in range(FIRST_SEED, FIRST_SEED + 60):
        case = random_case(seed, LATE_SIBLINGS)
        runs = run_case(case).runs
        reaching_back += sum(runs[query.name].complete_from < query.created_at for query in case.queries)
    assert reaching_back >= 10


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_query_answers_the_same_alone_and_among_others(chunk: int) -> None:
    for seed in seeds_of(chunk, 0.1):
        case = random_case(seed, CaseLimits(late_queries=False))
        together = run_case(case).runs
        for alone in one_query_cases(case):
            (query,) = alone.queries
            about = f"seed {seed}, {query.name} alone and among others: {query.sql}"
            assert_same_answers(run_case(alone).runs[query.name].answers, together[query.name].answers, about)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_order_of_arrival_and_batch_splits_change_no_answer(chunk: int) -> None:
    for seed in seeds_of(chunk, 0.1):
        case = nothing_late(random_case(seed))
        runs = check_case(case).runs
        runs_again = run_case(split_again(Random(seed), case)).runs
        for query in case.queries:
            about = f"seed {seed}, {query.name} with the rows in other batches: {query.sql}"
            assert_same_answers(runs_again[query.name].answers, runs[query.name].answers, about)


def test_keys_whose_hashes_collide_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    let_keys_collide(monkeypatch)
    check_seeds(range(FIRST_SEED, FIRST_SEED + 60), random_case)


@settings(max_examples=60, suppress_health_check=list(HealthCheck), phases=[Phase.generate, Phase.shrink])
@given(case=engine_cases(CaseLimits(max_streams=3, max_batches=4, max_queries=3, max_rows=5)))
def test_cases_drawn_by_hypothesis_hold(case: EngineCase) -> None:
    check_case(case)


@pytest.mark.parametrize("name", KEPT)
def test_kept_failures_stay_fixed(name: str) -> None:
    check_case(KEPT[name])
