"""`complete_from` claims neither more nor less than it may (C7).

That it claims too much shows in the answers, which `check_case` holds to the oracle. That it claims too little shows
beside a twin: whatever an older query of the same text may use is there for the younger one, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pytest

from tests.support.asserts import check_case
from tests.support.cases import EngineCase
from tests.support.generators.cases import CHAINS, DEFAULT_LIMITS, LATE_SIBLINGS, LONG_RUNS, CaseLimits, random_case
from tests.support.keep_failures import seeds_of

LIMITS = {"everything": DEFAULT_LIMITS, "long": LONG_RUNS, "siblings": LATE_SIBLINGS, "chains": CHAINS}


def with_twins(rng: Random, case: EngineCase) -> tuple[EngineCase, dict[str, str]]:
    """Every query comes at some time, and most a second time later; the names of the first by those of their twins."""
    queries, older = [], {}
    for query in case.queries:
        first = replace(query, created_at=rng.randrange(len(case.batches)), dropped_at=None)
        queries.append(first)
        if first.created_at + 1 < len(case.batches):
            created_at = rng.randrange(first.created_at + 1, len(case.batches))
            queries.append(replace(first, name=f"{query.name}_twin", created_at=created_at))
            older[queries[-1].name] = query.name
    return replace(case, queries=tuple(queries)), older


def twins_that_reach_back(seeds: Iterable[int], limits: CaseLimits) -> int:
    """How many have an older one that is not complete from the start."""
    reaching = 0
    for seed in seeds:
        case, older = with_twins(Random(seed), random_case(seed, limits))
        runs = check_case(case).runs
        for twin, first in older.items():
            assert runs[twin].complete_from <= runs[first].complete_from, f"seed {seed}: {twin}"
            reaching += runs[first].complete_from > 0
    return reaching


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
def test_a_twin_reaches_back_as_far_as_the_older_one(limits: CaseLimits) -> None:
    twins_that_reach_back(seeds_of(0, 1, 0.01), limits)


def test_there_are_such_twins() -> None:
    """Else the test above would show little."""
    assert twins_that_reach_back(range(4), LATE_SIBLINGS)
