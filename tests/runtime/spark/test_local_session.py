from __future__ import annotations

import sys

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F


@pytest.mark.spark
def test_python_workers_run_this_interpreter(spark: SparkSession) -> None:
    executable = F.udf(lambda _: sys.executable)
    assert spark.range(1).select(executable("id")).first()[0] == sys.executable


@pytest.mark.spark
def test_session_is_in_utc_and_without_user_interface(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sparkContext.uiWebUrl is None
