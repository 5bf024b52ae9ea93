from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dovetail.frontend.compile_sql import compile_sql
from dovetail.query.stream import Stream
from dovetail.query.types import BIGINT, DOUBLE, STRING, TIMESTAMP, SqlType

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.slow
@pytest.mark.spark
def test_python_example_of_the_readme_runs_and_gives_results(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert spark.version.startswith("4.")
    # The first one is whole; those after it go on from there.
    example, *_ = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    own_folder = example.replace("/tmp/dovetail-checkpoint", str(tmp_path / "checkpoint"))  # noqa: S108
    assert own_folder != example
    exec(compile(own_folder, "README.md", "exec"), {})  # noqa: S102 - our own text
    printed = capsys.readouterr().out
    assert re.search(r"^\|\s*\d+\|\s*\d+\|\s*\d+\|$", printed, flags=re.MULTILINE), printed


def stream(name: str, **columns: SqlType) -> Stream:
    return Stream(name, (*columns.items(), ("ts", TIMESTAMP)), "ts", 0)


def test_sql_examples_of_the_readme_are_queries() -> None:
    streams = (
        stream("lines", shipmode=STRING, price=DOUBLE),
        stream("orders", id=BIGINT, price=DOUBLE),
        stream("payments", order_id=BIGINT),
        stream("views", lang=STRING, user=STRING),
    )
    text = "".join(re.findall(r"```sql\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL))
    queries = re.split(r";\s*(?:--.*)?\n\s*", text.strip() + "\n")
    compiled = [compile_sql(query, {each.name: each for each in streams}) for query in queries if query]
    assert len(compiled) == 3
