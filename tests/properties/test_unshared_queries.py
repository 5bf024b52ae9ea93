"""`copies="query"`: whoever shares nothing answers the same (random cases), also where sessions change their mind."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from dovetail.testing.local_session import LocalSession
from tests.support.asserts import CaseRun, change_queries, check_case, check_run, open_session
from tests.support.cases import EngineCase
from tests.support.faults.runs import read_run
from tests.support.generators.cases import CHAINS, DEFAULT_LIMITS, GROUPS, LATE_SIBLINGS, CaseLimits, random_case
from tests.support.generators.outer_cases import check_every_batch, random_outer_case

CASE_COUNT = int(os.environ.get("DOVETAIL_CASES", "600"))
EXCHANGES = ("references", "rows")
FIRST_SEED = int(os.environ.get("DOVETAIL_SEED", "0")) + 6_000_000

MAKERS: dict[str, Callable[[int], EngineCase]] = {
    "everything": lambda seed: random_case(seed, DEFAULT_LIMITS),
    "chains": lambda seed: random_case(seed, CHAINS),
    "groups": lambda seed: random_case(seed, GROUPS),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_queries_that_share_nothing_answer_the_same(make: Callable[[int], EngineCase]) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + CASE_COUNT // 40):
        check_case(replace(make(seed), copies=None), copies="query", exchange=EXCHANGES[seed % 2])


def test_rows_are_decided_the_same_where_nothing_is_shared() -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + CASE_COUNT // 40):
        case = replace(random_outer_case(seed), copies=None)
        check_every_batch(case, copies="query", exchange=EXCHANGES[seed % 2])


@pytest.mark.parametrize("limits", [LATE_SIBLINGS, GROUPS], ids=["late_siblings", "groups"])
def test_a_query_goes_on_as_it_began_when_sessions_come_back_with_another_option(
    limits: CaseLimits, tmp_path: Path
) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + CASE_COUNT // 50):
        case = replace(random_case(seed, limits), copies=None)
        check_run(case, run_with_restarts(case, tmp_path / str(seed), Random(seed)))


def run_with_restarts(case: EngineCase, checkpoint_dir: Path, rng: Random) -> CaseRun:
    for batch in range(len(case.batches)):
        options = {"copies": rng.choice(("query", "partition")), "exchange": rng.choice(EXCHANGES)}
        session = open_session(case, checkpoint_dir, **options)
        try:
            change_queries(session, case, batch, {})
            session.push(case.tables(batch), splits=case.splits)
            run = read_run(session)
        finally:
            session.close()
    return run


def test_nothing_is_shared(tmp_path: Path) -> None:
    session = LocalSession(tmp_path, copies="query")
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64())])
    for stream in ("a", "b"):
        session.create_stream(stream, schema)
    for number in range(3):
        session.create_query("SELECT a.v, b.v FROM a JOIN b ON a.k = b.k", f"q{number}")
        session.create_query("SELECT a.k, COUNT(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY a.k", f"g{number}")
    rows = pa.table({"k": [1, 1, 2], "v": [1, 2, 3]}, schema)
    session.push({"a": rows, "b": rows})
    plan, _ = session.engine.plan()
    assert len(plan.stores) == len(plan.trees) == 6 * 2
    assert len(plan.groups) == 3
    assert all(len(tree.legs) == len(node.legs) == 1 for tree in plan.trees for node in tree.walk())
    stored = sum(store["numRows"] for store in (session.progress or {})["stores"])
    session.close()
    assert stored >= 6 * 2 * rows.num_rows
