from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dovetail import QueryError, Session

SQL = "SELECT a.k, b.k, a.name FROM a JOIN b ON a.k = b.k WITHIN 10 SECONDS -- <b>"


@pytest.mark.spark
def test_answers_as_arrow_and_pandas_and_handles_as_html(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame([(1, "x"), (2, "y")], "k int, name string").selectExpr(
        "*", "timestamp'2026-01-01 00:00:00' AS ts"
    )
    rows.write.parquet(str(tmp_path / "rows"))
    with Session(spark, tmp_path / "checkpoint") as session:
        for name in ("a", "b"):
            df = spark.readStream.schema(rows.schema).parquet(str(tmp_path / "rows"))
            session.create_stream(name, df, event_time="ts")
        query = session.create_query(SQL, "pairs")
        assert query.to_arrow().num_rows == 0
        session.start(trigger="available_now").await_termination()
        assert query.to_arrow().column_names == ["k", "k_2", "name"]
        found = query.to_pandas().sort_values("k")
        assert found.to_dict("list") == {"k": [1, 2], "k_2": [1, 2], "name": ["x", "y"]}
        assert sorted(map(tuple, query.results().collect())) == [(1, 1, "x"), (2, 2, "y")]
        assert "<tr><th>answers</th><td>2</td></tr>" in query._repr_html_()
        assert "&lt;b&gt;" in query._repr_html_()
        assert "<td>pairs</td><td>running</td><td>2</td>" in session._repr_html_()
        assert "1 queries" in repr(session)
        assert session.explain()._repr_html_().startswith("<pre>")
        assert query.explain()._repr_html_().startswith("<pre>")


@pytest.mark.spark
def test_a_query_is_followed_while_the_session_runs_as_in_pyspark(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame([(1, 4), (2, 2), (3, 0)], "k int, v int")
    for k in (1, 2, 3):
        rows.where(f"k = {k}").coalesce(1).write.mode("append").parquet(str(tmp_path / "rows"))
    session = Session(spark, tmp_path / "checkpoint")
    for name in ("a", "b"):
        df = spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "rows"))
        session.create_stream(name, df)
    assert [(stream.name, [c.type for c in stream.columns]) for stream in session.streams] == [
        ("a", ["int", "int"]),
        ("b", ["int", "int"]),
    ]
    pairs = session.create_query("SELECT a.k FROM a JOIN b ON a.k = b.k", "pairs")
    failing = session.create_query("SELECT a.k, 8 div b.v AS x FROM a JOIN b ON a.k = b.k", "failing")
    assert not pairs.is_active
    assert session.recent_progress == []
    tail, failing_tail = pairs.tail(), failing.tail()
    with session.start():
        assert sorted(row["k"] for row in islice(tail, 3)) == [1, 2, 3]
        assert pairs.is_active
        with pytest.raises(QueryError, match="'failing' is stopped since batch"):
            list(failing_tail)
        assert (failing.is_active, pairs.exception) == (False, None)
        assert "division" in str(failing.exception).lower()
        batches = [progress["batchId"] for progress in session.recent_progress]
        assert batches == list(range(len(batches)))
        newest = session.progress
        assert newest is not None
        assert [stream.pop("failing") for stream in newest["streams"]] == [None, None]
        assert session.recent_progress[-1] == newest
        following = pairs.tail()
    assert list(following) == []
    assert following.end_reason == "stopped"
    assert not pairs.is_active
