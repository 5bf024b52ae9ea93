from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


@pytest.mark.slow
def test_it_starts_where_temporary_files_have_long_names(tmp_path: Path) -> None:
    """In a process of its own: the tests have one Java for all."""
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    program = f"""
from dovetail import local_spark
spark = local_spark("long", spark__driver__extraJavaOptions="-Djava.io.tmpdir={folder}")
print("rows:", spark.range(7).mapInArrow(lambda batches: batches, "id bigint").count())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "rows: 7" in done.stdout, done.stderr[-2_000:]
