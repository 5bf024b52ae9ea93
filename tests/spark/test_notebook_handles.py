from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dovetail import Session

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
