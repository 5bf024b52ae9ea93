"""No answer depends on how indexes are routed and placed: another routing, another placement and another placing
key of every index with every batch, and another number of partitions (B2, A7, S1).
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from random import Random

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from dovetail.kernels.match.hash_keys import KeyCodes
from dovetail.plan.probe_tree import ProbeStep
from dovetail.runtime.probe import probe_operator, route_entries
from dovetail.runtime.probe.route_entries import Deal
from dovetail.runtime.source.key_codes import ColumnOf, probing_codes
from dovetail.testing.local_session import LocalSession
from tests.support.asserts import CaseFailed, check_case, scratch_dir
from tests.support.cases import EngineCase
from tests.support.generators.cases import CHAINS, DEFAULT_LIMITS, GROUPS, THETAS, CaseLimits, random_case
from tests.support.generators.plans import random_decisions

CASE_COUNT = int(os.environ.get("DOVETAIL_CASES", "600"))
FIRST_SEED = int(os.environ.get("DOVETAIL_SEED", "0"))
CHUNKS = 5
OPTIONS: list[dict[str, object]] = [
    {"routing": "hash"},
    {"routing": "random"},
    {"routing": "contrand"},
    {"routing": "contrand", "routing_subgroups": 3},
    {"routing": "auto"},
    {"decide": random_decisions(1)},
]


def routed_case(seed: int, limits: CaseLimits = DEFAULT_LIMITS) -> EngineCase:
    return replace(random_case(seed, limits), plan_seed=seed, partitions=1 + seed % 5, key_groups=8)


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize(
    "limits", [DEFAULT_LIMITS, CHAINS, THETAS, GROUPS], ids=["everything", "chains", "thetas", "groups"]
)
def test_routings_and_placements_may_change_with_every_batch(limits: CaseLimits, chunk: int) -> None:
    for seed in range(FIRST_SEED + chunk, FIRST_SEED + CASE_COUNT // 10, CHUNKS):
        check_case(routed_case(seed, limits))


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: str(options.get("routing", "random plans")))
def test_every_row_is_stored_once_whatever_the_routing(options: dict[str, object]) -> None:
    """B1: stored rows over input rows; nothing expires here, so all that was ever written is still there."""
    rng = Random(str(options))
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64())])
    with tempfile.TemporaryDirectory(dir=scratch_dir()) as folder:
        session = LocalSession(folder, partitions=5, small_batch_rows=0, **options)
        for stream in ("a", "b"):
            session.create_stream(stream, schema)
        session.create_query("SELECT a.v, b.v FROM a JOIN b ON a.k = b.k", "q")
        for _ in range(6):
            columns = {"k": [rng.choice([1, 1, 1, rng.randrange(50)]) for _ in range(100)], "v": list(range(100))}
            session.push({stream: pa.table(columns, schema) for stream in ("a", "b")}, splits=2)
        stored = sum(store["numRows"] for store in (session.progress or {})["stores"])
        session.close()
    assert stored / (6 * 2 * 100) == 1.0


def test_a_deal_that_gives_positions_twice_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Deal, "first", lambda _deal, lower, _offset: lower)
    assert_noticed()


def test_split_rows_that_are_sent_to_one_partition_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def to_the_first(refs: tuple[npt.NDArray[np.uint64], ...], count: int) -> npt.NDArray[np.int64]:
        return np.full(len(refs[0]), count)

    monkeypatch.setattr(route_entries, "_dealt", to_the_first)
    assert_noticed(CHAINS)


def test_new_rows_that_forget_which_key_places_them_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ProbeStep.probing_index
    monkeypatch.setattr(ProbeStep, "probing_index", lambda step, member: replace(real(step, member), placing=None))
    assert_noticed()


def test_partial_results_that_forget_which_key_places_them_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_the_whole_key(step: ProbeStep, column_of: ColumnOf, length: int, timezone: str) -> KeyCodes:
        whole = replace(step, index=replace(step.index, placing=None))
        return probing_codes(whole, column_of, length, timezone)

    monkeypatch.setattr(probe_operator, "probing_codes", by_the_whole_key)
    assert_noticed(CHAINS)


def assert_noticed(limits: CaseLimits = DEFAULT_LIMITS) -> None:
    failures = 0
    for seed in range(60):
        try:
            check_case(routed_case(seed, limits))
        except CaseFailed:
            failures += 1
        if failures > 5:
            return
    pytest.fail(f"{failures} of 60 cases failed")
