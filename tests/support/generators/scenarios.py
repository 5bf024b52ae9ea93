"""Scenarios at random: what is asked, how it is planned, placed and shipped, and what happens meanwhile, all at once.

No answer may depend on any of it, so one case checks many of these at once; `kinds` narrows what is asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from tests.support.cases import EngineCase, QueryCase
from tests.support.faults.batch_faults import random_faults
from tests.support.generators.cases import (
    CHAINS,
    CLOSING_GROUPS,
    DEFAULT_LIMITS,
    GROUPS,
    GROUPS_AMONG_ROWS,
    LATE_SIBLINGS,
    LONE_WINDOWS,
    LONG_RUNS,
    THETA_CHAINS,
    THETAS,
    CaseLimits,
    random_case,
)
from tests.support.generators.chain_cases import random_chain_case, random_fill_case
from tests.support.generators.edge_cases import random_edge_case
from tests.support.generators.outer_cases import LONG_OUTER_RUNS, OUTER_GROUPS, random_outer_case
from tests.support.scenario import IDLE_TIMEOUT_S, Scenario

ROWS = "rows"
GROUPED = "groups"
OUTER = "outer"


def _of(limits: CaseLimits) -> Callable[[int], EngineCase]:
    return lambda seed: random_case(seed, limits)


MAKERS: Mapping[str, tuple[str, Callable[[int], EngineCase]]] = {
    "everything": (ROWS, _of(DEFAULT_LIMITS)),
    "long runs": (ROWS, _of(LONG_RUNS)),
    "lone windows": (ROWS, _of(LONE_WINDOWS)),
    "edges of time": (ROWS, random_edge_case),
    "late siblings": (ROWS, _of(LATE_SIBLINGS)),
    "chains": (ROWS, _of(CHAINS)),
    "plain chains": (ROWS, random_chain_case),
    "fills": (ROWS, random_fill_case),
    "thetas": (ROWS, _of(THETAS)),
    "theta chains": (ROWS, _of(THETA_CHAINS)),
    "groups": (GROUPED, _of(GROUPS)),
    "closing groups": (GROUPED, _of(CLOSING_GROUPS)),
    "groups among rows": (GROUPED, _of(GROUPS_AMONG_ROWS)),
    "outer joins": (OUTER, random_outer_case),
    "long outer joins": (OUTER, lambda seed: random_outer_case(seed, LONG_OUTER_RUNS)),
    "groups of outer joins": (GROUPED, lambda seed: random_outer_case(seed, OUTER_GROUPS)),
}
"""By kind what its answers are made of, and its maker."""

SHARES = {
    "everything": 5,
    "long runs": 1,
    "lone windows": 1,
    "edges of time": 2,
    "late siblings": 2,
    "chains": 2,
    "plain chains": 1,
    "fills": 1,
    "thetas": 2,
    "theta chains": 1,
    "groups": 3,
    "closing groups": 2,
    "groups among rows": 1,
    "outer joins": 3,
    "long outer joins": 1,
    "groups of outer joins": 3,
}
KINDS = tuple(kind for kind, share in SHARES.items() for _ in range(share))


def random_scenario(seed: int, kinds: Sequence[str] = KINDS) -> Scenario:
    rng = Random(seed)
    about, make = MAKERS[rng.choice(kinds)]
    scenario = Scenario(make(rng.randrange(1 << 32)))
    if rng.random() < 0.5:
        scenario = _with_other_partitions(scenario, rng)
    if rng.random() < 0.3:
        scenario = _with_policies(scenario, rng)
    if rng.random() < 0.2:
        options = {**scenario.options, **_elastic_options(rng, scenario.case.key_groups)}
        scenario = replace(scenario, options=options, loads_seed=rng.randrange(1 << 30))
    if about == ROWS and rng.random() < 0.3:
        scenario = replace(scenario, case=_with_limits(scenario.case, rng))
    if about == GROUPED and rng.random() < 0.25:
        scenario = replace(scenario, options={**scenario.options, "factorize": False})
    scenario = _with_events(replace(scenario, do_codes_collide=rng.random() < 0.15), about, rng)
    return replace(scenario, bundle_fanout=rng.choice([None, 2, 3]))


def _with_events(scenario: Scenario, about: str, rng: Random) -> Scenario:
    """Faults, streams that come later or fall silent, or none of these."""
    case = scenario.case
    draw = rng.random()
    if draw < 0.15:
        case, first_batches = with_later_streams(case, rng)
        scenario = replace(scenario, case=case, first_batches=first_batches)
    elif draw < 0.3 and about == ROWS and len(case.batches) > 2:
        return with_silence(scenario, rng)
    if rng.random() < 0.3:
        return replace(scenario, faults=random_faults(rng, len(case.batches)))
    return replace(scenario, is_watched=about == GROUPED and rng.random() < 0.4)


def _with_other_partitions(scenario: Scenario, rng: Random) -> Scenario:
    key_groups = rng.choice([8, 16])
    return replace(scenario, case=replace(scenario.case, partitions=rng.randint(1, 5), key_groups=key_groups))


def _with_policies(scenario: Scenario, rng: Random) -> Scenario:
    """The engine's own plans, under one of its policies or another."""
    case = replace(scenario.case, plan_seed=None)
    if rng.random() < 0.4:
        if case.copies == "key":
            case = replace(case, copies="partition")
        return replace(scenario, case=case, options={"placement": "shared"}, is_restless=True)
    options: dict[str, Any] = rng.choice(
        [{"routing": "hash"}, {"routing": "random"}, {"routing": "contrand"}, {"routing": "auto"}]
    )
    return replace(scenario, case=case, options={**options, "keep_intermediates": rng.choice(["never", "always"])})


def _elastic_options(rng: Random, key_groups: int) -> dict[str, Any]:
    low, target, high = sorted(rng.sample(range(1, 40), 3))
    least = rng.choice([1, 1, 2])
    return {
        "elastic": True,
        "min_partitions": least,
        "max_partitions": rng.randint(least, key_groups),
        "max_bytes_per_partition": rng.choice([1000, 5000, 20_000, 1 << 30]),
        "low_load": low / 20,
        "target_load": target / 20,
        "high_load": high / 20,
        "scale_after": rng.choice([1, 1, 2]),
        "small_batch_rows": rng.choice([0, 0, 20_000]),
    }


def _with_limits(case: EngineCase, rng: Random) -> EngineCase:
    """About half of the queries may find only a few results a batch, and sometimes nobody may meet many pairs."""
    queries = tuple(
        replace(query, max_results_per_batch=rng.choice([None, None, 1, 3, 10, 30])) for query in case.queries
    )
    return replace(case, queries=queries, max_pairs_per_batch=rng.choice([None, None, 5, 40]))


def with_later_streams(case: EngineCase, rng: Random) -> tuple[EngineCase, dict[str, int]]:
    """The case without what a stream brought before the batch with which it comes; its queries come no earlier."""
    first_batches = {s.name: rng.choice([0, rng.randrange(len(case.batches))]) for s in case.streams}
    # Without a stream there is no batch.
    first_batches[rng.choice(case.streams).name] = 0
    batches = tuple(
        {name: rows for name, rows in rows_by_stream.items() if first_batches[name] <= batch}
        for batch, rows_by_stream in enumerate(case.batches)
    )
    queries = [_not_before_its_streams(query, first_batches) for query in case.queries]
    alive = tuple(query for query in queries if query.dropped_at is None or query.created_at < query.dropped_at)
    return replace(case, batches=batches, queries=alive), first_batches


def _not_before_its_streams(query: QueryCase, first_batches: Mapping[str, int]) -> QueryCase:
    used = [first for name, first in first_batches.items() if re.search(rf"\b{name}\b", query.sql)]
    return replace(query, created_at=max(query.created_at, *used))


def with_silence(scenario: Scenario, rng: Random) -> Scenario:
    """Streams skip some batches, and batches are far apart, so that some streams are carried along."""
    case = scenario.case
    batches = tuple({name: rows for name, rows in batch.items() if rng.random() < 0.5} for batch in case.batches)
    begins = [0.0]
    for _ in batches[1:]:
        begins.append(begins[-1] + rng.choice([0.6, 1.5]) * IDLE_TIMEOUT_S)
    return replace(scenario, case=replace(case, batches=batches), begins=tuple(begins))
