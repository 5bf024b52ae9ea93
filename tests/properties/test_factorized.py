"""Aggregates over joins are the same whether joined rows are built or not, and as batch SQL has them (D4).

DOVETAIL_CASES sets how many cases, DOVETAIL_SEED where they begin, as in `test_streamed_answers`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dovetail.frontend.compile_sql import compile_sql
from dovetail.kernels.fold import prefix_sums
from dovetail.kernels.fold.fold_runs import Runs, find_runs
from dovetail.optimizer.passes.choose_factorizations import choose_factorizations
from dovetail.optimizer.passes.plan_groups import plan_groups
from dovetail.optimizer.pipeline import plan_queries
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.placement import even_placement
from dovetail.plan.probe_tree import Emit
from dovetail.runtime.factorized import foldable_rows, walk
from dovetail.runtime.factorized.walk import Walk, WalkedRows
from tests.support.asserts import assert_same_answers, check_case, failure_of, run_case
from tests.support.cases import EngineCase
from tests.support.colliding_keys import let_keys_collide
from tests.support.generators.cases import CLOSING_GROUPS, GROUPS, GROUPS_AMONG_ROWS, CaseLimits, random_case

CASE_COUNT = int(os.environ.get("DOVETAIL_CASES", "600"))
FIRST_SEED = int(os.environ.get("DOVETAIL_SEED", "0"))
CHUNKS = 5


def emits_of(case: EngineCase) -> list[Emit]:
    """Those of all its queries for groups of joins, each planned alone."""
    streams = {stream.name: stream.stream for stream in case.streams}
    found = []
    for query in case.queries:
        joining, groups = plan_groups((LiveQuery(query.name, query.name, compile_sql(query.sql, streams)),))
        plan = plan_queries(joining, streams, even_placement(8, 2), epoch=1, groups=groups)
        nodes = [node for tree in choose_factorizations(plan).trees for node in tree.walk()]
        found += [emit for node in nodes for emit in node.emits if groups]
    return found


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize(
    ("limits", "share"),
    [(GROUPS, 0.15), (CLOSING_GROUPS, 0.1), (GROUPS_AMONG_ROWS, 0.05)],
    ids=["groups", "closing", "among_rows"],
)
def test_answers_are_the_same_with_and_without_joined_rows(limits: CaseLimits, share: float, chunk: int) -> None:
    for seed in range(FIRST_SEED + chunk, FIRST_SEED + int(CASE_COUNT * share), CHUNKS):
        case = replace(random_case(seed, limits), partitions=1 + seed % 4, key_groups=8)
        folded, built = check_case(case).runs, run_case(case, factorize=False).runs
        for query in case.queries:
            if query.name in folded:
                about = f"seed {seed}, {query.name} without and with joined rows: {query.sql}"
                assert_same_answers(folded[query.name].answers, built[query.name].answers, about)


def test_random_cases_have_steps_of_every_kind() -> None:
    emits = [emit for seed in range(60) for emit in emits_of(random_case(seed, GROUPS))]
    sides = [emit.factorization.side.name for emit in emits if emit.factorization]
    assert sides.count("STORED") >= 20
    assert sides.count("PROBING") >= 5
    assert len([emit for emit in emits if emit.why_built]) >= 20


def test_keys_whose_hashes_collide_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    let_keys_collide(monkeypatch)
    for seed in range(FIRST_SEED, FIRST_SEED + 40):
        check_case(random_case(seed, GROUPS))


def sums_one_entry_late(prefix: Any, runs: Runs) -> Any:
    return prefix_sums.sums_of_runs(prefix, Runs(np.minimum(runs.begins + 1, runs.ends), runs.ends))


def runs_one_entry_short(*args: Any) -> Runs:
    runs = find_runs(*args)
    return Runs(runs.begins, np.maximum(runs.ends - 1, runs.begins))


def no_bound_is_accepted(times: Any, lower: Any, upper: Any) -> Any:
    from dovetail.kernels.fold.fold_runs import accepted_times  # noqa: PLC0415 - the real one, not the patched name

    return accepted_times(times, lower - 1_000_000, upper + 1_000_000)


@pytest.mark.parametrize(
    ("owner", "name", "bug"),
    [
        (foldable_rows, "sums_of_runs", sums_one_entry_late),
        (foldable_rows, "find_runs", runs_one_entry_short),
        (walk, "accepted_times", no_bound_is_accepted),
        (WalkedRows, "weights", property(lambda self: np.ones(len(self), np.int64))),
        (Walk, "arguments", property(lambda self: {each.name: each.expression for each in self.emit.output[:0]})),
    ],
    ids=["a prefix is off by one", "a run is too short", "bounds are wider", "weights are 1", "nothing is folded"],
)
def test_a_planted_bug_is_found(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str, bug: Callable[..., object]
) -> None:
    monkeypatch.setattr(owner, name, bug)
    assert any(failure_of(random_case(seed, GROUPS)) for seed in range(200))
