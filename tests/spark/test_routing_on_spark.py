"""Routings, placements and shipped rows through the real Session: answers are Spark's batch SQL's."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dovetail import Session
from dovetail.engine.options.engine_options import with_tuning
from dovetail.engine.progress.print_progress import print_progress
from dovetail.optimizer.policies import ChosenRouting, GivenPolicies
from dovetail.plan.placement import Placements
from dovetail.plan.shared_plan import SharedPlan
from dovetail.stats.catalog import StatsCatalog
from tests.support.asserts import assert_same_answers
from tests.support.cases import EngineCase, keep_rows_in_time
from tests.support.generators.cases import CaseLimits, random_case
from tests.support.generators.plans import RandomPlacements, RandomRoutings
from tests.support.oracles.answers import answers_of_table
from tests.support.spark_runs import FileStreams, SparkBatchOracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PATIENCE_S = 120
LIMITS = CaseLimits(max_queries=6, max_batches=5, late_queries=False)


def case_of(seed: int, limits: CaseLimits = LIMITS) -> EngineCase:
    """The first case from `seed` on that has something to join in several batches."""
    while True:
        case = random_case(seed, limits)
        if len(case.queries) >= 3 and len(case.batches) >= 4 and len(case.streams) >= 2:
            return case
        seed += 1000


def check(
    spark: SparkSession, case: EngineCase, folder: Path, policies: GivenPolicies | None = None, **options: object
) -> list[dict[str, Any]]:
    """The progress of every batch."""
    streams = FileStreams(spark, case, folder / "streams")
    given = with_tuning({"key_groups": 16, "small_batch_rows": 0, **options})
    session = Session(spark, str(folder / "checkpoint"), **given)
    session.engine.plans.follow(lambda _batch: policies or GivenPolicies())
    for stream in case.streams:
        session.create_stream(
            stream.name, streams.frame(stream), event_time=stream.event_time, lateness=stream.lateness
        )
    for batch in range(len(case.batches)):
        streams.add_batch(batch)
    handles = {query.name: session.create_query(query.sql, name=query.name) for query in case.queries}
    seen: list[dict[str, Any]] = []
    session.engine.answers.listen(lambda news: seen.append(print_progress(news.figures)))
    session.start(trigger="available_now")
    session.await_termination(timeout=PATIENCE_S)
    answers = {name: answers_of_table(handle.results().toArrow()) for name, handle in handles.items()}
    session.stop()
    oracle = SparkBatchOracle(spark, case, keep_rows_in_time(case))
    for query in case.queries:
        assert handles[query.name].status.state == "running"
        assert_same_answers(answers[query.name], oracle.expected(query, complete_from=0), f"{query.name}: {query.sql}")
    return seen


@pytest.mark.parametrize("routing", ["random", "contrand"])
def test_a_fixed_routing_changes_no_answer(spark: SparkSession, tmp_path: Path, routing: str) -> None:
    check(spark, case_of(11), tmp_path, partitions=4, routing=routing)


def test_another_routing_with_every_batch_changes_no_answer(spark: SparkSession, tmp_path: Path) -> None:
    plans = count()

    def choose(plan: SharedPlan, stats: StatsCatalog, running: tuple[ChosenRouting, ...]) -> tuple[ChosenRouting, ...]:
        return RandomRoutings(5, next(plans))(plan, stats, running)

    check(spark, case_of(12), tmp_path, GivenPolicies(routing=choose), partitions=3)
    assert next(plans) >= 4


def test_other_placements_and_partitions_with_every_batch_change_no_answer(spark: SparkSession, tmp_path: Path) -> None:
    """Some batches run as one task, whatever their partitions."""
    plans = count()
    partition_counts = set()

    def choose(plan: SharedPlan, stats: StatsCatalog, running: Placements | None) -> Placements:
        placements = RandomPlacements(6, next(plans))(plan, stats, running)
        partition_counts.add(placements.usual.partition_count)
        return placements

    check(spark, case_of(14), tmp_path, GivenPolicies(placement=choose), partitions=2, small_batch_rows=8)
    assert next(plans) >= 4
    assert len(partition_counts) >= 3


@pytest.mark.parametrize("copies", ["partition", "key"])
def test_shipped_rows_change_no_answer(spark: SparkSession, tmp_path: Path, copies: str) -> None:
    """With other placements and another number of partitions every batch."""
    plans = count()

    def choose(plan: SharedPlan, stats: StatsCatalog, running: Placements | None) -> Placements:
        return RandomPlacements(6, next(plans))(plan, stats, running)

    case = case_of(14)
    seen = check(spark, case, tmp_path, GivenPolicies(placement=choose), partitions=3, exchange="rows", copies=copies)
    shipped = [progress["shipped"] for progress in seen if progress["shipped"]["rows"]]
    assert len(shipped) >= 3
    for entry in shipped:
        assert entry["rows"] == sum(entry["rowsByPartition"]) >= entry["inputRows"]
        assert entry["exchangedBytes"] > entry["bytes"] > 0


def test_references_ship_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    seen = check(spark, case_of(15), tmp_path, partitions=2)
    assert all(progress["shipped"]["rows"] == progress["shipped"]["bytes"] == 0 for progress in seen)
    assert all(progress["shipped"]["exchangedBytes"] is None for progress in seen)
