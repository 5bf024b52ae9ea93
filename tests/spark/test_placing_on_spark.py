"""A placement that follows the data through the real Session: rows travel less from one batch on, answers are exact."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dovetail import Session
from dovetail.engine.options import EngineTuning
from dovetail.engine.progress.print_progress import print_progress
from tests.support.spark_runs import FIRST_FILE_AT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PATIENCE_S = 180
BATCHES, ROWS, KEYS = 7, 400, 40
NEAR = "BETWEEN o.ts - INTERVAL 1 SECOND AND o.ts + INTERVAL 1 SECOND"
QUERIES = {
    "by_x": f"SELECT a.x FROM a JOIN b o ON a.x = o.x AND a.ts {NEAR}",
    "by_y": f"SELECT a.y FROM a JOIN c o ON a.y = o.y AND a.ts {NEAR}",
}


def write_streams(folder: Path) -> None:
    """Two keys that go together, so that every row of a could have one place."""
    chance = np.random.default_rng(4)
    for stream in ("a", "b", "c"):
        (folder / stream).mkdir(parents=True)
        for batch in range(BATCHES):
            x = chance.integers(0, KEYS, ROWS)
            times = pa.array(np.full(ROWS, batch * 10_000_000)).cast(pa.timestamp("us", "UTC"))
            file = folder / stream / f"{batch}.parquet"
            pq.write_table(pa.table({"x": x, "y": (3 * x + 1) % KEYS, "ts": times}), file)
            os.utime(file, (FIRST_FILE_AT + batch, FIRST_FILE_AT + batch))


def test_rows_travel_less_once_a_placement_is_proven(spark: SparkSession, tmp_path: Path) -> None:
    write_streams(tmp_path / "streams")
    schema = "x BIGINT, y BIGINT, ts TIMESTAMP"
    session = Session(
        spark,
        str(tmp_path / "checkpoint"),
        partitions=3,
        key_groups=64,
        exchange="rows",
        tuning=EngineTuning(plan_in_background=False, small_batch_rows=0),
    )
    for stream in ("a", "b", "c"):
        folder = str(tmp_path / "streams" / stream)
        session.create_stream(
            stream,
            spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder),
            event_time="ts",
        )
        spark.read.schema(schema).parquet(folder).createOrReplaceTempView(stream)
    handles = {name: session.create_query(sql, name=name) for name, sql in QUERIES.items()}
    seen: list[dict[str, Any]] = []
    session.engine.answers.listen(lambda news: seen.append(print_progress(news.figures)))
    session.start(trigger="available_now")
    session.await_termination(timeout=PATIENCE_S)
    answers = {name: sorted(row[0] for row in handle.results().collect()) for name, handle in handles.items()}
    session.stop()
    assert len(seen) == BATCHES
    assert seen[-1]["placement"]["timesTaken"] == 1
    for progress in seen:
        assert progress["placement"]["expectedShippedRows"] == pytest.approx(progress["shipped"]["rows"])
    first, last = seen[0]["shipped"], seen[-1]["shipped"]
    assert last["inputRows"] == first["inputRows"]
    assert last["rows"] < 0.85 * first["rows"]
    assert last["bytes"] < first["bytes"]
    for name, sql in QUERIES.items():
        assert answers[name] == sorted(row[0] for row in spark.sql(sql).collect())
