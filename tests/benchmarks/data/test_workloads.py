"""The data and the queries of the benchmarks are what the suites claim they are."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from benchmarks.data.workloads import (
    EVENT_TIME_START_US,
    Workload,
    ajoin_queries,
    chain_hops,
    interval_join,
    write_workload,
)
from benchmarks.options import BenchError
from benchmarks.peers.duckdb_peer import DuckDbPeer

WORKLOAD = Workload(("a", "b"), seconds=4, rows_per_second=500, key_ranges=(100,) * 6)


def test_the_same_recipe_gives_the_same_rows(tmp_path: Path) -> None:
    first = write_workload(WORKLOAD, tmp_path / "first")
    second = write_workload(WORKLOAD, tmp_path / "second")
    for stream in WORKLOAD.streams:
        assert pq.read_table(first.path(stream)).equals(pq.read_table(second.path(stream)))


def test_streams_differ_from_each_other(tmp_path: Path) -> None:
    files = write_workload(WORKLOAD, tmp_path / "data")
    assert not pq.read_table(files.path("a")).equals(pq.read_table(files.path("b")))


@pytest.mark.parametrize("seconds_per_file", [1, 2])
def test_a_file_holds_its_own_seconds_and_is_younger_than_the_one_before(tmp_path: Path, seconds_per_file: int) -> None:
    workload = Workload(("a",), 4, 500, (100,) * 6, seconds_per_file=seconds_per_file)
    files = write_workload(workload, tmp_path / "data")
    paths = sorted(files.path("a").iterdir())
    assert len(paths) == workload.file_count == 4 // seconds_per_file
    for number, path in enumerate(paths):
        event_time_us = pc.cast(pq.read_table(path)["ts"], "int64").to_numpy() - EVENT_TIME_START_US
        assert number * seconds_per_file * 1_000_000 <= event_time_us.min()
        assert event_time_us.max() < (number + 1) * seconds_per_file * 1_000_000
    modified_at = [path.stat().st_mtime for path in paths]
    assert modified_at == sorted(set(modified_at))


def test_row_ids_are_unique_in_a_stream(tmp_path: Path) -> None:
    files = write_workload(WORKLOAD, tmp_path / "data")
    ids = pq.read_table(files.path("a"))["id"].to_numpy()
    assert sorted(ids) == list(range(WORKLOAD.seconds * WORKLOAD.rows_per_second))


def test_a_prefix_has_the_first_seconds_only(tmp_path: Path) -> None:
    files = write_workload(WORKLOAD, tmp_path / "data")
    part = files.prefix(3, tmp_path / "part")
    assert part.workload.total_rows == 3 * 500 * 2
    assert pq.read_table(part.path("b")).num_rows == 3 * 500


def test_more_queries_begin_with_the_same_queries() -> None:
    few, many = ajoin_queries(5, 100_000, seed=7), ajoin_queries(500, 100_000, seed=7)
    assert list(many.items())[:5] == list(few.items())


def test_all_queries_are_distinct_and_no_constant_is_used_twice() -> None:
    texts = list(ajoin_queries(500, 100_000, seed=7).values())
    constants = [word for text in texts for word in text.split(" WHERE ")[1].split() if word.isdigit()]
    assert len(set(texts)) == 500
    assert len(constants) == len(set(constants)) == 1000


def test_a_query_yields_about_one_result_per_ten_rows(tmp_path: Path) -> None:
    workload = Workload(("a", "b"), seconds=20, rows_per_second=1000, key_ranges=(5000,) * 6)
    with DuckDbPeer(write_workload(workload, tmp_path / "data"), threads=1) as duckdb:
        answers = duckdb.answers(ajoin_queries(60, 5000, seed=1))
    results_per_row = sum(answer.row_count for answer in answers.values()) / 60 / workload.total_rows
    assert 0.07 < results_per_row < 0.13


def test_the_interval_join_yields_one_partner_per_row(tmp_path: Path) -> None:
    workload = Workload(("a", "b"), seconds=20, rows_per_second=1000, key_ranges=(2000,) * 6)
    with DuckDbPeer(write_workload(workload, tmp_path / "data"), threads=1) as duckdb:
        assert 18_000 < duckdb.answer(interval_join(1)).row_count < 21_000


def test_each_hop_of_a_chain_uses_attributes_of_its_own() -> None:
    used = [
        attribute
        for hop in chain_hops(5)
        for attribute in ((hop.probe, hop.probe_attribute), (hop.stored, hop.stored_attribute))
    ]
    assert len(used) == len(set(used)) == 8


@pytest.mark.parametrize(
    "broken",
    [
        {"key_ranges": (100,) * 5},
        {"key_ranges": (2**31,) * 6},
        {"seconds": 0},
        {"rows_per_second": 0},
        {"seconds_per_file": 3},
    ],
)
def test_an_impossible_workload_is_refused(broken: dict[str, object]) -> None:
    recipe: dict[str, object] = {"streams": ("a",), "seconds": 4, "rows_per_second": 5, "key_ranges": (100,) * 6}
    with pytest.raises(BenchError):
        Workload(**(recipe | broken))  # type: ignore[arg-type]


def test_too_few_values_for_distinct_constants_are_refused() -> None:
    with pytest.raises(BenchError, match="more constants"):
        ajoin_queries(500, 5000, seed=1)
