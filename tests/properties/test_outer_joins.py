"""Random outer, semi and anti joins whose rows are all decided: the answers are DuckDB's, whatever our front end thinks
a query means. That every single batch answers what it must is a kind of scenario (`test_scenarios.py`).
"""

from __future__ import annotations

import pytest

from tests.support.asserts import CaseFailed
from tests.support.generators.outer_cases import check_flushed, flushed, random_outer_case
from tests.support.keep_failures import seeds_of
from tests.support.run_scenario import check_scenario
from tests.support.scenario import Scenario

CHUNKS = 2


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_once_all_rows_are_decided_the_answers_are_those_of_batch_sql(chunk: int) -> None:
    for seed in seeds_of(chunk, CHUNKS, 0.03):
        try:
            check_flushed(flushed(random_outer_case(seed)))
        except Exception as error:
            raise CaseFailed(f"seed {seed}: {type(error).__name__}: {error}") from error


@pytest.mark.parametrize("seed", [14626859004])
def test_seeds_that_failed_stay_fixed(seed: int) -> None:
    """An anti join by a band and by times, which DuckDB must be asked for as NOT EXISTS."""
    check_flushed(flushed(random_outer_case(seed)))


def test_random_cases_have_answers() -> None:
    runs = [check_scenario(Scenario(random_outer_case(seed))).runs for seed in range(6)]
    assert sum(run.answers.total() for each in runs for run in each.values() if run.by_batch is not None) > 50
