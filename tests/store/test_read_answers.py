"""The current answer of files: rows that came minus rows that were taken back."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dovetail.core.errors import StoreError
from dovetail.frontend.compile_sql import compile_sql
from dovetail.query.answer_columns import answer_columns
from dovetail.query.stream import Stream
from dovetail.query.types import DOUBLE, INT, STRING, TIMESTAMP, SqlType
from dovetail.store.manifest import ResultPart
from dovetail.store.read_answers import answer_schema, current_answers

COLUMNS = (("k", INT), ("d", DOUBLE), ("s", STRING), ("price", SqlType("decimal", 10, 2)), ("ts", TIMESTAMP))
STREAMS = {"a": Stream("a", COLUMNS, "ts")}


def written(root: Path, query, *batches: list[tuple]) -> list[ResultPart]:
    """One file per batch, as the writer makes them."""
    schema = answer_schema(answer_columns(query), "UTC")
    files = []
    for number, rows in enumerate(batches):
        columns = list(zip(*rows, strict=True)) or [[] for _ in schema]
        path = f"{number}.parquet"
        arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        pq.write_table(pa.table(arrays, schema=schema), root / path)
        files.append(ResultPart("q", path, len(rows), (root / path).stat().st_size))
    return files


def test_rows_that_were_taken_back_are_gone(tmp_path: Path) -> None:
    query = compile_sql("SELECT k, COUNT(*) AS n FROM a GROUP BY k", STREAMS)
    files = written(
        tmp_path,
        query,
        [(1, 1, 1), (None, 2, 1)],
        [(1, 1, -1), (1, 5, 1), (2, 1, 1)],
        [(2, 1, -1), (None, 2, -1), (None, 3, 1)],
    )
    as_of = [current_answers(tmp_path, query, files[:count], "UTC") for count in range(4)]
    assert [table.column_names for table in as_of] == [["k", "n"]] * 4
    assert [list(zip(*table.to_pydict().values(), strict=True)) for table in as_of] == [
        [],
        [(1, 1), (None, 2)],
        [(None, 2), (1, 5), (2, 1)],
        [(1, 5), (None, 3)],
    ]


def test_a_row_of_two_groups_is_there_twice(tmp_path: Path) -> None:
    query = compile_sql("SELECT COUNT(*) AS n FROM a GROUP BY k", STREAMS)
    files = written(tmp_path, query, [(1, 1), (1, 1), (2, 1)], [(1, -1), (2, 1), (1, 1), (2, -1)])
    assert current_answers(tmp_path, query, files, "UTC").to_pydict() == {"n": [1, 1, 2]}


def test_values_of_all_kinds_are_taken_back(tmp_path: Path) -> None:
    query = compile_sql("SELECT MAX(d) AS d, MIN(s) AS s, SUM(price) AS p, MAX(ts) AS t FROM a", STREAMS)
    first = (math.nan, "ä", Decimal("1.50"), 5)
    nothing = (None, None, None, None)
    files = written(
        tmp_path,
        query,
        [(*nothing, 1)],
        [(*nothing, -1), (*first, 1)],
        [(*first, -1), (1.0, "b", Decimal(2), 6, 1)],
    )
    (row,) = current_answers(tmp_path, query, files[:2], "UTC").to_pylist()
    assert math.isnan(row["d"])
    assert (row["s"], row["p"]) == ("ä", Decimal("1.50"))
    assert current_answers(tmp_path, query, files, "UTC").column("d").to_pylist() == [1.0]


def test_output_that_is_called_like_the_change_column_keeps_its_name(tmp_path: Path) -> None:
    query = compile_sql("SELECT COUNT(*) AS _change FROM a", STREAMS)
    assert answer_schema(answer_columns(query), "UTC").names == ["_change", "_change_2"]
    files = written(tmp_path, query, [(7, 1)])
    assert current_answers(tmp_path, query, files, "UTC").to_pydict() == {"_change": [7]}


def test_distinct_rows_are_read_as_they_are(tmp_path: Path) -> None:
    query = compile_sql("SELECT DISTINCT k FROM a", STREAMS)
    files = written(tmp_path, query, [(1,)], [(2,)])
    assert current_answers(tmp_path, query, files, "UTC").to_pydict() == {"k": [1, 2]}


def test_taking_back_what_never_came_is_an_error(tmp_path: Path) -> None:
    query = compile_sql("SELECT COUNT(*) AS n FROM a", STREAMS)
    with pytest.raises(StoreError, match="taken back that never came"):
        current_answers(tmp_path, query, written(tmp_path, query, [(7, -1)]), "UTC")
