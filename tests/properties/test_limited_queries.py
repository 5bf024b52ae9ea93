"""Random cases in which queries pass their limits: these stop with that batch, all others stay exact."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dovetail.engine.admission.query_limits import passed_limits
from dovetail.optimizer.intermediates.kept import KeptIntermediate, maintained_by
from dovetail.plan.fill import filled_by
from dovetail.plan.query_limits import BatchLimits, QueryLimits
from tests.support.asserts import CaseRun, check_case, check_run
from tests.support.cases import EngineCase
from tests.support.faults.runs import random_faults, run_with_faults
from tests.support.generators.cases import CHAINS, DEFAULT_LIMITS, LATE_SIBLINGS, THETAS, CaseLimits, random_case
from tests.support.generators.chain_cases import random_chain_case

CASE_COUNT = int(os.environ.get("DOVETAIL_CASES", "600")) // 4
FIRST_SEED = int(os.environ.get("DOVETAIL_SEED", "0"))
CHUNKS = 5


def with_limits(case: EngineCase, rng: Random) -> EngineCase:
    """About half of the queries may find only a few results a batch, and sometimes nobody may meet many pairs."""
    queries = tuple(
        replace(query, max_results_per_batch=rng.choice([None, None, 1, 3, 10, 30])) for query in case.queries
    )
    return replace(case, queries=queries, max_pairs_per_batch=rng.choice([None, None, 5, 40]))


def stopped(run: CaseRun) -> int:
    return sum(each.failed_batch is not None for each in run.runs.values())


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize(
    ("limits", "share"),
    [(DEFAULT_LIMITS, 1.0), (LATE_SIBLINGS, 0.5), (CHAINS, 0.5), (THETAS, 0.5)],
    ids=["everything", "late_siblings", "chains", "thetas"],
)
def test_who_passes_a_limit_stops_there_and_the_others_stay_exact(limits: CaseLimits, share: float, chunk: int) -> None:
    seen = 0
    for seed in range(FIRST_SEED + chunk, FIRST_SEED + int(CASE_COUNT * share), CHUNKS):
        case = with_limits(random_case(seed, limits), Random(seed))
        try:
            seen += stopped(check_case(case))
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    assert seen


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_kept_join_that_passes_its_limit_is_given_up_and_nobody_misses_it(
    monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    given_up = 0

    def only_for_kept_joins(_running: object, kept: Iterable[KeptIntermediate], *_others: object) -> BatchLimits:
        names = [name(each) for each in kept for name in (_maintained, _filled)]
        return BatchLimits(own_by_query=dict.fromkeys(names, QueryLimits(pairs=4)))

    def counted(*given: Any) -> dict[str, str]:
        nonlocal given_up
        passed = passed_limits(*given)
        given_up += len(passed)
        return passed

    monkeypatch.setattr("dovetail.engine.batch.make_task.batch_limits", only_for_kept_joins)
    monkeypatch.setattr("dovetail.engine.batch.next_state.passed_limits", counted)
    for seed in range(FIRST_SEED + chunk, FIRST_SEED + CASE_COUNT // 5, CHUNKS):
        try:
            check_case(random_chain_case(seed))
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    assert given_up


def _maintained(kept: KeptIntermediate) -> str:
    return maintained_by(kept.intermediate)


def _filled(kept: KeptIntermediate) -> str:
    return filled_by(kept.intermediate.id)


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("limits", [DEFAULT_LIMITS, CHAINS], ids=["everything", "chains"])
def test_crashes_retries_and_replays_come_to_the_same_end(tmp_path: Path, limits: CaseLimits, chunk: int) -> None:
    seen = 0
    for seed in range(FIRST_SEED + chunk, FIRST_SEED + CASE_COUNT // 3, CHUNKS):
        rng = Random(seed)
        case = with_limits(random_case(seed, limits), rng)
        faults = random_faults(rng, len(case.batches))
        try:
            run = run_with_faults(case, tmp_path / str(seed), faults)
            check_run(case, run)
            seen += stopped(run)
        except Exception as error:
            raise AssertionError(f"seed {seed} with {faults}: {error}") from error
    assert seen
