"""Random outer, semi and anti joins: every batch answers what it must, and in the end all is as in batch SQL.

DOVETAIL_CASES sets how many (a third of it), DOVETAIL_SEED where they begin.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from dovetail.optimizer.passes import derive_stores
from dovetail.plan.lone_rows import LoneRows
from dovetail.runtime.probe.lone_row_operator import ALL_ENTRIES, LoneRowOperator
from tests.support.asserts import CaseFailed, assert_same_answers
from tests.support.cases import EngineCase
from tests.support.faults.runs import random_faults, run_with_faults
from tests.support.generators.cases import CaseLimits
from tests.support.generators.outer_cases import (
    LONG_OUTER_RUNS,
    OUTER_LIMITS,
    check_every_batch,
    check_flushed,
    expected_answers,
    flushed,
    random_outer_case,
)

CASE_COUNT = int(os.environ.get("DOVETAIL_CASES", "600")) // 5
FIRST_SEED = int(os.environ.get("DOVETAIL_SEED", "0"))
CHUNKS = 5


def seeds_of(chunk: int, share: float) -> range:
    return range(FIRST_SEED + chunk, FIRST_SEED + max(int(CASE_COUNT * share), CHUNKS), CHUNKS)


def checked(seed: int, check: Callable[[EngineCase], int | None], case: EngineCase) -> int:
    try:
        return check(case) or 0
    except Exception as error:
        raise CaseFailed(f"seed {seed}: {type(error).__name__}: {error}") from error


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize(
    ("limits", "share"), [(OUTER_LIMITS, 1.0), (LONG_OUTER_RUNS, 0.3)], ids=["everything", "long_runs"]
)
def test_every_batch_answers_the_rows_that_it_decides(limits: CaseLimits, share: float, chunk: int) -> None:
    for seed in seeds_of(chunk, share):
        checked(seed, check_every_batch, random_outer_case(seed, limits))


def test_random_cases_have_answers() -> None:
    assert sum(check_every_batch(random_outer_case(seed)) for seed in range(10)) > 100


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_once_all_rows_are_decided_the_answers_are_those_of_batch_sql(chunk: int) -> None:
    for seed in seeds_of(chunk, 1.0):
        checked(seed, check_flushed, flushed(random_outer_case(seed)))


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_row_is_answered_once_whatever_fails(tmp_path: Path, chunk: int) -> None:
    for seed in seeds_of(chunk, 0.2):
        case = random_outer_case(seed)
        folder = tmp_path / str(seed)
        run = run_with_faults(case, folder, random_faults(Random(seed), len(case.batches)))
        for query in case.queries:
            found = run.runs[query.name]
            expected = expected_answers(case, query, found.complete_from)
            assert_same_answers(found.answers, expected, f"seed {seed}, {query.name}: {query.sql}")


def decided_a_second_early(self: LoneRows, watermarks: dict[str, int]) -> int | None:
    watermark_us = watermarks.get(self.partner_stream)
    return None if watermark_us is None else watermark_us - self.upper_us + 10**6


@pytest.mark.parametrize(
    ("owner", "name", "bug"),
    [
        (LoneRows, "decided_until", decided_a_second_early),
        (derive_stores, "_asked_again", lambda _live, _relation: ()),
        (LoneRowOperator, "_asking_again", lambda self, tree, _refs: self._asking(tree, (), ALL_ENTRIES)[0]),
    ],
    ids=["rows are decided too early", "partners go too early", "semi joins forget earlier partners"],
)
def test_a_planted_bug_is_found(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str, bug: Callable[..., object]
) -> None:
    monkeypatch.setattr(owner, name, bug)

    def fails(seed: int) -> bool:
        try:
            check_every_batch(random_outer_case(seed, LONG_OUTER_RUNS))
        except CaseFailed:
            return True
        return False

    assert any(fails(seed) for seed in range(100))
