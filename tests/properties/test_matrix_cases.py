"""Random joins of two streams in a join-matrix of any shape: the answers are those of batch SQL (B10)."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from dovetail.core.errors import QueryError
from tests.support.asserts import check_case
from tests.support.generators.cases import CaseLimits, one_query_cases, random_case
from tests.support.generators.queries import QueryLimits

CASE_COUNT = int(os.environ.get("DOVETAIL_CASES", "600")) // 6
FIRST_SEED = int(os.environ.get("DOVETAIL_SEED", "0"))
CHUNKS = 3


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("theta_chance", [0.0, 0.8], ids=["equalities", "thetas"])
def test_a_matrix_gives_the_answers_of_batch_sql(theta_chance: float, chunk: int) -> None:
    limits = CaseLimits(queries=QueryLimits(2, theta_chance=theta_chance))
    checked = 0
    for seed in range(FIRST_SEED + chunk, FIRST_SEED + CASE_COUNT, CHUNKS):
        case = replace(random_case(seed, limits), plan_seed=None, copies=None, partitions=1 + seed % 6, key_groups=8)
        for alone in one_query_cases(case):
            try:
                check_case(alone, layout="join_matrix")
            except QueryError as refusal:
                assert "join-matrix" in str(refusal)  # noqa: PT017
            else:
                checked += 1
    assert checked or CASE_COUNT < 10 * CHUNKS
