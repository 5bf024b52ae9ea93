"""Routings, placements and shipped rows through the real Session: answers are Spark's batch SQL's."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dovetail.optimizer.policies import ChosenRouting, GivenPolicies
from dovetail.plan.placement import Placements
from dovetail.plan.shared_plan import SharedPlan
from dovetail.stats.catalog import StatsCatalog
from tests.support.asserts import assert_same_answers
from tests.support.cases import EngineCase, keep_rows_in_time
from tests.support.generators.cases import CaseLimits, random_case
from tests.support.generators.plans import RandomPlacements, RandomRoutings
from tests.support.spark_runs import SparkBatchOracle, drain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LIMITS = CaseLimits(max_queries=6, max_batches=5, late_queries=False)


def case_of(seed: int, limits: CaseLimits = LIMITS) -> EngineCase:
    """The first case from `seed` on that has something to join in several batches."""
    while True:
        case = random_case(seed, limits)
        if len(case.queries) >= 3 and len(case.batches) >= 4 and len(case.streams) >= 2:
            return case
        seed += 1000


def check(
    spark: SparkSession, case: EngineCase, folder: Path, policies: GivenPolicies | None = None, **options: Any
) -> list[Mapping[str, Any]]:
    """The progress of every batch."""
    run = drain(spark, case, folder, policies=policies, **options)
    assert set(run.errors.values()) == {None}
    oracle = SparkBatchOracle(spark, case, keep_rows_in_time(case))
    for query in case.queries:
        expected = oracle.expected(query, complete_from=0)
        assert_same_answers(run.answers[query.name], expected, f"{query.name}: {query.sql}")
    return list(run.progress)


class AnyPlan:
    """Other routings and placements with every plan."""

    def __init__(self) -> None:
        self._routed = count()
        self._placed = count()
        self.partition_counts: set[int] = set()

    @property
    def policies(self) -> GivenPolicies:
        return GivenPolicies(placement=self._place, routing=self._route)

    def _route(
        self, plan: SharedPlan, stats: StatsCatalog, running: tuple[ChosenRouting, ...]
    ) -> tuple[ChosenRouting, ...]:
        return RandomRoutings(5, next(self._routed))(plan, stats, running)

    def _place(self, plan: SharedPlan, stats: StatsCatalog, running: Placements | None) -> Placements:
        placements = RandomPlacements(6, next(self._placed))(plan, stats, running)
        self.partition_counts.add(placements.usual.partition_count)
        return placements


@pytest.mark.slow
@pytest.mark.parametrize("routing", ["random", "contrand"])
def test_a_fixed_routing_changes_no_answer(spark: SparkSession, tmp_path: Path, routing: str) -> None:
    check(spark, case_of(11), tmp_path, partitions=4, routing=routing)


@pytest.mark.parametrize(
    ("seed", "small_batch_rows"), [(14, 0), pytest.param(12, 8, marks=pytest.mark.slow)], ids=["stages", "some tasks"]
)
def test_other_routings_placements_and_partitions_with_every_batch_change_no_answer(
    spark: SparkSession, tmp_path: Path, seed: int, small_batch_rows: int
) -> None:
    """And no row is shipped: references are."""
    plans = AnyPlan()
    seen = check(spark, case_of(seed), tmp_path, plans.policies, partitions=2, small_batch_rows=small_batch_rows)
    assert len(plans.partition_counts) >= 3
    assert all(progress["shipped"]["rows"] == progress["shipped"]["bytes"] == 0 for progress in seen)
    assert all(progress["shipped"]["exchangedBytes"] is None for progress in seen)


@pytest.mark.parametrize("copies", ["partition", "key"])
def test_shipped_rows_change_no_answer(spark: SparkSession, tmp_path: Path, copies: str) -> None:
    """With other placements and another number of partitions every batch."""
    placing = GivenPolicies(placement=AnyPlan().policies.placement)
    seen = check(spark, case_of(14), tmp_path, placing, partitions=3, exchange="rows", copies=copies)
    shipped = [progress["shipped"] for progress in seen if progress["shipped"]["rows"]]
    assert len(shipped) >= 3
    for entry in shipped:
        assert entry["rows"] == sum(entry["rowsByPartition"]) >= entry["inputRows"]
        assert entry["exchangedBytes"] > entry["bytes"] > 0
