"""What exchanges wrote, as Spark itself counts it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dovetail.runtime.spark.shuffle_metrics import ShuffleMetrics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS = 1_000


def test_the_last_exchanges_are_counted_and_no_others(spark: SparkSession) -> None:
    frame = spark.range(ROWS).repartition(3).repartition(2, "id")
    metrics = ShuffleMetrics(spark.sparkContext)
    with metrics.observed():
        frame.filter("id % 2 = 0").repartition(3, "id").collect()
    frame.collect()
    every = metrics.exchanges(9)
    assert [each.records for each in every][-1] == ROWS // 2
    assert metrics.exchanges(1) == every[-1:]
    assert all(each.written_bytes > 0 for each in every)


def test_a_job_without_exchanges_wrote_nothing(spark: SparkSession) -> None:
    metrics = ShuffleMetrics(spark.sparkContext)
    with metrics.observed():
        spark.range(ROWS).collect()
    assert metrics.exchanges(1) == []
