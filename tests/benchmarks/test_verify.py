"""The checksum tells different answers apart and equal ones together."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.data.workloads import StreamFiles, Workload
from benchmarks.peers.duckdb_peer import DuckDbPeer
from benchmarks.verify import Answer, same_rows, unequal_queries

NO_STREAMS = StreamFiles(Workload((), 1, 1, (1,) * 6), Path())
ROWS = [(1, 10), (2, 20), (3, 30)]


def _answer(folder: Path, rows: list[tuple[int, int]]) -> Answer:
    folder.mkdir()
    columns = {name: pa.array([row[i] for row in rows], pa.int64()) for i, name in enumerate(("a_id", "b_id"))}
    pq.write_table(pa.table(columns), folder / "rows.parquet")
    with DuckDbPeer(NO_STREAMS, threads=1) as duckdb:
        return duckdb.answer_of_files(folder)


def test_the_order_of_rows_does_not_matter(tmp_path: Path) -> None:
    assert _answer(tmp_path / "one", ROWS) == _answer(tmp_path / "other", ROWS[::-1])


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([(1, 20), (2, 10), (3, 30)], id="partners swapped"),
        pytest.param([(10, 1), (2, 20), (3, 30)], id="columns swapped"),
        pytest.param([(1, 10), (1, 10), (3, 30)], id="one row twice, another missing"),
        pytest.param([(1, 10), (2, 20)], id="a row missing"),
        pytest.param([], id="nothing"),
    ],
)
def test_a_wrong_answer_has_another_checksum(tmp_path: Path, rows: list[tuple[int, int]]) -> None:
    assert _answer(tmp_path / "right", ROWS) != _answer(tmp_path / "wrong", rows)


def test_a_missing_query_is_unequal() -> None:
    assert unequal_queries({"q1": Answer(1, 5), "q2": Answer(0, 0)}, {"q1": Answer(1, 5)}) == ["q2"]


def test_equal_answers_leave_nothing_to_report() -> None:
    assert unequal_queries({"q1": Answer(1, 5)}, {"q1": Answer(1, 5)}) == []


def test_rows_are_the_same_whatever_their_order_and_types() -> None:
    expected = pa.table({"k": ["x", "y"], "n": [1, 2], "v": [0.5, 1.5]})
    observed = pa.table({"k": ["y", "x"], "total": pa.array([2, 1]).cast(pa.decimal128(38, 0)), "v": [1.5, 0.5]})
    assert same_rows(expected, observed)


@pytest.mark.parametrize(
    "other",
    [
        {"k": ["x", "y"], "n": [1, 3]},
        {"k": ["y", "x"], "n": [1, 2]},
        {"k": ["x"], "n": [1]},
        {"k": ["x", "y", "y"], "n": [1, 2, 2]},
        {"k": ["x", "y"], "n": [1, None]},
    ],
)
def test_rows_that_differ_are_not_the_same(other: dict[str, list[object]]) -> None:
    assert not same_rows(pa.table({"k": ["x", "y"], "n": [1, 2]}), pa.table(other))


def test_a_time_is_the_same_with_and_without_its_zone() -> None:
    plain = pa.table({"ts": pa.array([1_000_000]).cast(pa.timestamp("us"))})
    assert same_rows(plain, pa.table({"ts": pa.array([1_000_000]).cast(pa.timestamp("us", tz="UTC"))}))
