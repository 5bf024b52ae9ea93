"""A program that ends Spark before its session: the session is stopped first, and one line says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from dovetail import Session, local_spark

spark = local_spark("stops-first")
session = Session(spark, sys.argv[1])
rows = spark.readStream.format("rate").option("rowsPerSecond", 100).load().withColumnRenamed("timestamp", "ts")
session.create_stream("a", rows, event_time="ts")
query = session.create_query("SELECT x.value FROM a x JOIN a y ON x.value = y.value WITHIN 5 SECONDS", name="q")
session.start()
query.await_results(rows=1)
spark.stop()
session.stop()
print("ended after", query.status.committed_batch >= 0)
"""
LAUNCHER_LINES = 8
"""What Spark's launcher prints before any setting is read."""


@pytest.mark.slow
@pytest.mark.spark
def test_spark_that_is_stopped_stops_its_sessions_first_and_says_so_in_a_line(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, str(program), str(tmp_path / "checkpoint")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600, env=dict(os.environ))
    errors = ran.stderr.splitlines()
    assert ran.stdout == "ended after True\n"
    assert [line for line in errors if "comes before session.stop()" in line] == [
        "spark.stop() comes before session.stop(): the session is stopped first"
    ]
    assert len(errors) <= LAUNCHER_LINES + 1, ran.stderr
