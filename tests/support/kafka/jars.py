"""What a Kafka broker runs with, and Spark's connector to it."""

from __future__ import annotations

import logging
from pathlib import Path

import pyspark

from tests.support.kafka.resolve_jars import Artifact, JarsMissing, resolve_jars

KAFKA_VERSION = "3.9.1"
_SPARK = "org.apache.spark"
_CONNECTOR = "spark-sql-kafka-0-10_2.13"
_TOKENS = "spark-token-provider-kafka-0-10_2.13"
_IN_SPARK = ("scala-library", "slf4j-api", "spark-tags_2.13", "hadoop-client-api", "hadoop-client-runtime")
_OLDER = (("4.2.0", "4.2.0"), ("4.2.0", "4.1.0-preview1"))
"""Connector and token provider, where the repository lacks those of the installed Spark: they run with it as well."""
_log = logging.getLogger("dovetail")


def broker_jars() -> list[Path]:
    return resolve_jars(
        (Artifact("org.apache.kafka", "kafka_2.13", KAFKA_VERSION), Artifact("org.slf4j", "slf4j-simple", "1.7.36"))
    )


def connector_jars() -> list[Path]:
    """For `spark.jars`: of the installed Spark version, or of the newest older one that is to be had whole."""
    installed = pyspark.__version__
    missing = []
    for connector, tokens in ((installed, installed), *_OLDER):
        try:
            jars = resolve_jars(
                (
                    Artifact(_SPARK, _CONNECTOR, connector, without=(*_IN_SPARK, _TOKENS)),
                    Artifact(_SPARK, _TOKENS, tokens, without=_IN_SPARK),
                )
            )
        except JarsMissing as error:
            missing.append(error)
            continue
        if connector != installed:
            _log.warning("no Kafka connector of Spark %s: taking %s with tokens %s", installed, connector, tokens)
        return jars
    raise missing[0]
