"""Crashes, retries, redelivery, restarts at every batch edge: the same rows once. Scenarios draw any mix of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dovetail.testing.faults import CRASH_STEPS, Faults, SimulatedCrash
from tests.support.asserts import check_run, open_session
from tests.support.cases import EngineCase
from tests.support.faults.batch_faults import BatchFaults
from tests.support.faults.runs import deliver_again, read_run
from tests.support.generators.cases import CaseLimits, random_case
from tests.support.oracles.answers import DuckDbOracle
from tests.support.run_scenario import run_with_faults

LIMITS = CaseLimits(max_streams=3, max_queries=5)


def lively_case(seed: int) -> EngineCase:
    """The first case from `seed` on with enough batches, answers, and queries that come in mid-run."""
    while True:
        case = random_case(seed, LIMITS)
        oracle = DuckDbOracle(case)
        answered = sum(bool(oracle.expected(query, query.created_at)) for query in case.queries)
        comes_late = any(query.created_at > 0 for query in case.queries)
        if len(case.batches) >= 4 and answered >= 3 and comes_late:
            return case
        seed += 1


@pytest.mark.parametrize("step", CRASH_STEPS)
@pytest.mark.parametrize("seed", [0, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_crash_at_every_batch_loses_and_doubles_nothing(tmp_path: Path, step: str, seed: int) -> None:
    case = lively_case(seed)
    faults = [BatchFaults(crash_at=step, is_redelivered=True)] * len(case.batches)
    check_run(case, run_with_faults(case, tmp_path, faults))


@pytest.mark.parametrize("step", CRASH_STEPS)
def test_the_named_step_really_crashes(tmp_path: Path, step: str) -> None:
    case = lively_case(0)
    session = open_session(case, tmp_path, faults=Faults(crash_at=step))
    session.create_query(case.queries[0].sql, name="q")
    with pytest.raises(SimulatedCrash):
        session.push(case.tables(0))
    is_committed = session.engine.head.batch == 0
    session.close()
    again = open_session(case, tmp_path)
    assert again.engine.head.batch == (0 if step in ("after_manifest", "during_cleanup") else -1)
    assert is_committed <= (again.engine.head.batch == 0)
    again.close()


@pytest.mark.parametrize("seed", [0, 1000])
def test_redelivered_batches_change_nothing(tmp_path: Path, seed: int) -> None:
    case = lively_case(seed)
    check_run(case, run_with_faults(case, tmp_path, [BatchFaults(is_redelivered=True)] * len(case.batches)))


def test_an_older_batch_that_comes_again_changes_nothing(tmp_path: Path) -> None:
    case = lively_case(0)
    session = open_session(case, tmp_path)
    for query in case.queries:
        session.create_query(query.sql, name=query.name)
    for batch in range(3):
        session.push(case.tables(batch))
    before = read_run(session)
    for batch in range(3):
        deliver_again(session, batch)
    session.redeliver()
    assert read_run(session) == before
    session.close()


@pytest.mark.parametrize("seed", [0, 1000])
def test_tasks_that_run_twice_leave_no_duplicates(tmp_path: Path, seed: int) -> None:
    case = lively_case(seed)
    check_run(case, run_with_faults(case, tmp_path, [BatchFaults(retry_tasks=True)] * len(case.batches)))


@pytest.mark.parametrize("seed", [0, 1000])
def test_a_restart_before_every_batch_with_other_partitions_changes_nothing(tmp_path: Path, seed: int) -> None:
    case = replace(lively_case(seed), key_groups=8)
    faults = [BatchFaults(partitions=1 + batch % 3) for batch in range(len(case.batches))]
    check_run(case, run_with_faults(case, tmp_path, faults))
