"""No answer depends on how many units the load asks for: random thresholds, loads and cases, also with crashes (B9)."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from dovetail.engine.observe.finished_batch import FinishedBatch
from dovetail.engine.planning.elastic_units import ElasticUnits, UnitsNow
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.hop_operator import run_hop
from dovetail.runtime.local import run_local
from dovetail.runtime.message import Message
from dovetail.stats.catalog import StatsCatalog
from tests.support.asserts import CaseFailed, check_case, check_run, scratch_dir
from tests.support.cases import EngineCase
from tests.support.faults.runs import random_faults, run_with_faults
from tests.support.generators.cases import CHAINS, DEFAULT_LIMITS, GROUPS, THETAS, CaseLimits, random_case

CASE_COUNT = int(os.environ.get("DOVETAIL_CASES", "600"))
FIRST_SEED = int(os.environ.get("DOVETAIL_SEED", "0"))


def elastic_case(seed: int, limits: CaseLimits) -> EngineCase:
    return replace(random_case(seed, limits), partitions=1 + seed % 5, key_groups=16)


def elastic_options(seed: int) -> dict[str, object]:
    rng = Random(seed)
    low, target, high = sorted(rng.sample(range(1, 40), 3))
    least = rng.choice([1, 1, 2])
    return {
        "elastic": True,
        "min_partitions": least,
        "max_partitions": rng.randint(least, 16),
        "max_bytes_per_partition": rng.choice([1000, 5000, 20_000, 1 << 30]),
        "low_load": low / 20,
        "target_load": target / 20,
        "high_load": high / 20,
        "scale_after": rng.choice([1, 1, 2]),
        "small_batch_rows": rng.choice([0, 0, 20_000]),
    }


@contextmanager
def watched(seed: int) -> Iterator[Counter[int]]:
    """By new number of units, how often there were so many; batches take a random share of their interval."""
    rng = Random(seed)
    seen: Counter[int] = Counter()
    note_batch = ElasticUnits.note_batch

    def note(
        units: ElasticUnits, batch: FinishedBatch, stats: StatsCatalog, _batch_s: float, *, is_one_task: bool
    ) -> UnitsNow:
        units.interval_s = rng.choice([None, 1.0])
        now = note_batch(units, batch, stats, rng.uniform(0, 2), is_one_task=is_one_task)
        assert now.moved_rows == 0
        if now.next_partitions != now.partitions:
            seen[now.next_partitions] += 1
        return now

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ElasticUnits, "note_batch", note)
        yield seen


@pytest.mark.parametrize(
    ("first", "share"), [(0, 40), pytest.param(10_000, 6, marks=pytest.mark.slow)], ids=["some", "many"]
)
@pytest.mark.parametrize(
    "limits", [DEFAULT_LIMITS, CHAINS, THETAS, GROUPS], ids=["everything", "chains", "thetas", "groups"]
)
def test_units_come_and_go_and_no_answer_changes(limits: CaseLimits, first: int, share: int) -> None:
    with watched(first) as seen:
        for seed in range(FIRST_SEED + first, FIRST_SEED + first + max(CASE_COUNT // share, 4)):
            check_case(elastic_case(seed, limits), **elastic_options(seed))
    assert seen.total() > 0


def test_crashes_while_units_come_and_go_lose_and_double_nothing() -> None:
    with watched(0) as seen, tempfile.TemporaryDirectory(dir=scratch_dir()) as folder:
        for seed in range(FIRST_SEED, FIRST_SEED + max(CASE_COUNT // 60, 4)):
            case = elastic_case(seed, DEFAULT_LIMITS)
            faults = random_faults(Random(seed), len(case.batches))
            check_run(case, run_with_faults(case, Path(folder, str(seed)), faults, **elastic_options(seed)))
    assert seen.total() > 0


def test_a_unit_that_joins_and_does_nothing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    first_count: dict[str, int] = {}

    def run_known(task: BatchTask, partition: int, hop: int, received: Iterable[Message]) -> Iterator[Message]:
        known = first_count.setdefault(task.root, task.plan.placement.partition_count)
        return run_hop(task, partition, hop, received) if partition < known else iter(())

    monkeypatch.setattr(run_local, "run_hop", run_known)
    failures = 0
    with watched(1):
        for seed in range(16):
            try:
                check_case(elastic_case(seed, DEFAULT_LIMITS), **elastic_options(seed))
            except CaseFailed:
                failures += 1
    assert failures > 2
