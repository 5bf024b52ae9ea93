"""A broker, and a Spark session that can talk to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from dovetail.runtime.spark.local_session import end_local_spark, local_spark
from tests.support.kafka.broker import KafkaBroker
from tests.support.kafka.jars import connector_jars


@pytest.fixture(scope="session")
def kafka_spark() -> Iterator[SparkSession]:
    if SparkContext._active_spark_context is not None:
        pytest.fail("Spark runs here already, without the Kafka connector; run these tests alone: pytest -m kafka")
    session = local_spark("dovetail-kafka-tests", spark__jars=",".join(map(str, connector_jars())))
    yield session
    end_local_spark(session)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaBroker]:
    with KafkaBroker(tmp_path / "kafka") as broker:
        yield broker
