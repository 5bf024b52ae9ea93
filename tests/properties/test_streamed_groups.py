"""Random queries for groups through the whole engine in one process: the answers are those of batch SQL.

DOVETAIL_CASES sets how many, DOVETAIL_SEED where they begin, as in `test_streamed_answers`.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from dovetail.kernels.fold.group_rows import KeyColumn, codes_of_keys, key_column
from dovetail.runtime.groups import partial_groups
from tests.support.asserts import (
    assert_same_answers,
    change_queries,
    check_case,
    check_run,
    check_seeds,
    open_session,
    run_case,
)
from tests.support.faults.runs import random_faults, run_with_faults
from tests.support.generators.cases import (
    CLOSING_GROUPS,
    GROUPS,
    GROUPS_AMONG_ROWS,
    CaseLimits,
    nothing_late,
    random_case,
    split_again,
)
from tests.support.oracles.answers import CaseOracle, answers_of_table

CASE_COUNT = int(os.environ.get("DOVETAIL_CASES", "600"))
FIRST_SEED = int(os.environ.get("DOVETAIL_SEED", "0")) + 3_000_000
CHUNKS = 10
SEEDS_DIR = Path(__file__).parent.parent / "seeds"


def seeds_of(chunk: int, share: float) -> range:
    return range(FIRST_SEED + chunk, FIRST_SEED + int(CASE_COUNT * share), CHUNKS)


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize(
    ("limits", "share"),
    [(GROUPS, 0.3), (CLOSING_GROUPS, 0.2), (GROUPS_AMONG_ROWS, 0.1)],
    ids=["groups", "closing_groups", "groups_among_rows"],
)
def test_streamed_groups_are_those_of_batch_sql(limits: CaseLimits, share: float, chunk: int) -> None:
    check_seeds(seeds_of(chunk, share), lambda seed: random_case(seed, limits), SEEDS_DIR)


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("limits", [GROUPS, CLOSING_GROUPS], ids=["groups", "closing_groups"])
def test_results_are_the_groups_as_of_every_batch(limits: CaseLimits, chunk: int, tmp_path: Path) -> None:
    """Running groups as they stand, and windows from the very batch that closes them."""
    for seed in seeds_of(chunk, 0.1):
        case = random_case(seed, limits)
        oracle = CaseOracle(case)
        session = open_session(case, tmp_path / str(seed))
        handles: dict[str, object] = {}
        for batch in range(len(case.batches)):
            change_queries(session, case, batch, handles)
            session.push(case.tables(batch), splits=case.splits)
            for query in case.queries:
                if query.created_at > batch or (query.dropped_at or len(case.batches)) <= batch:
                    continue
                expected = oracle.expected(
                    replace(query, dropped_at=batch + 1), handles[query.name].status.complete_from
                )
                about = f"seed {seed}, {query.name} after batch {batch}: {query.sql}"
                assert_same_answers(answers_of_table(session.results(query.name)), expected, about)
        session.close()


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_order_of_arrival_and_batch_splits_change_no_group(chunk: int) -> None:
    for seed in seeds_of(chunk, 0.1):
        case = nothing_late(random_case(seed, GROUPS))
        runs = check_case(case).runs
        runs_again = run_case(split_again(Random(seed), case)).runs
        for query in case.queries:
            about = f"seed {seed}, {query.name} with the rows in other batches: {query.sql}"
            assert_same_answers(runs_again[query.name].answers, runs[query.name].answers, about)


@pytest.mark.parametrize("limits", [GROUPS, CLOSING_GROUPS], ids=["groups", "closing_groups"])
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_any_mix_of_faults_leaves_groups_exact(limits: CaseLimits, chunk: int, tmp_path: Path) -> None:
    for seed in seeds_of(chunk, 0.1):
        case = random_case(seed, limits)
        faults = random_faults(Random(seed), len(case.batches))
        try:
            check_run(case, run_with_faults(case, tmp_path / str(seed), faults))
        except Exception as error:
            raise AssertionError(f"seed {seed} with {faults}: {error}") from error


def hashed_key(column: pa.Array) -> KeyColumn:
    return replace(key_column(column), is_exact=False)


def colliding_codes(columns: list[KeyColumn], length: int) -> npt.NDArray[np.uint64]:
    """Keys that are hashed get one of four codes, so that different groups often share one. Panes are not hashed."""
    codes = codes_of_keys(columns, length)
    return codes if len(columns) == 1 and columns[0].is_exact else codes & np.uint64(3 << 62)


def test_groups_whose_codes_collide_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial_groups, "key_column", hashed_key)
    monkeypatch.setattr(partial_groups, "codes_of_keys", colliding_codes)
    check_seeds(range(FIRST_SEED, FIRST_SEED + 40), lambda seed: random_case(seed, GROUPS))
