"""BiStream's queries and the join with many results ask what the suites claim, by DuckDB."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks.data.bistream import (
    BAND_COLUMNS,
    FIRST,
    SECOND,
    aggregate_cases,
    band_case,
    band_in_query_case,
    equi_case,
    write_aggregates,
    write_band,
)
from benchmarks.data.fanout import (
    ALL_SUMS,
    COUNT_AND_SUM,
    RESULTS_PER_ROW,
    Fanout,
    fanout_case,
    fanout_of,
    write_fanout,
)
from benchmarks.data.folder_case import FolderCase
from benchmarks.options import BenchError
from benchmarks.peers.duckdb_peer import DuckDbViews
from benchmarks.replay import duckdb_views
from benchmarks.tpch.tables import TpchFiles, select_sql
from benchmarks.verify import Answer, same_rows

SMALL = Fanout(keys=3, batches=4, rows_per_key=20)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TpchFiles:
    return write_band(0.01, 2, 1, tmp_path_factory.mktemp("tpch"))


def _answer(case: FolderCase, sql: str) -> Answer:
    with DuckDbViews(duckdb_views(case.streams), threads=1) as duckdb:
        return duckdb.answer(sql)


def _rows(case: FolderCase, sql: str) -> pa.Table:
    with DuckDbViews(duckdb_views(case.streams), threads=1) as duckdb:
        return duckdb.rows(sql)


def test_the_band_that_duckdb_is_asked_for_is_the_papers(files: TpchFiles) -> None:
    case = band_case(files, 0)
    assert case.sql != case.duckdb_sql
    assert _answer(case, case.sql) == _answer(case, case.duckdb_sql)


def test_selecting_while_reading_or_by_the_query_gives_the_same_band(files: TpchFiles) -> None:
    by_query, by_stream = band_in_query_case(files), band_case(files, 0)
    expected = _answer(by_query, by_query.duckdb_sql)
    assert expected.row_count > 0
    assert _answer(by_stream, by_stream.duckdb_sql) == expected


def test_the_equi_part_is_a_part_of_the_band(files: TpchFiles) -> None:
    band, equi = band_case(files, 0), equi_case(files, 0)
    assert 0 < _answer(equi, equi.sql).row_count < _answer(band, band.duckdb_sql).row_count


def test_both_selections_keep_some_lines_and_not_all(files: TpchFiles) -> None:
    with DuckDbViews(select_sql(files), threads=1) as duckdb:
        for where in (FIRST, SECOND):
            assert 0 < duckdb.number(f"SELECT count(*) FROM lineitem WHERE {where}") < files.rows_by_table["lineitem"]


def test_lines_are_projected_and_come_in_random_order(files: TpchFiles) -> None:
    lines = files.batch("lineitem", 0)
    assert lines.column_names == BAND_COLUMNS["lineitem"]
    keys = lines["l_orderkey"].to_pylist()
    assert min(keys) < max(keys) / 2
    assert keys != sorted(keys)


def test_every_aggregation_has_groups_of_different_keys(tmp_path: Path) -> None:
    for case in aggregate_cases(write_aggregates(0.02, 2, 1, tmp_path)):
        groups = _rows(case, case.duckdb_sql)
        assert groups.num_rows > 1
        assert len(set(zip(*(groups[key].to_pylist() for key in case.group_keys), strict=True))) == groups.num_rows


def test_the_aggregated_band_counts_as_many_pairs_as_the_band_has(tmp_path: Path) -> None:
    files = write_aggregates(0.02, 2, 1, tmp_path)
    grouped = aggregate_cases(files)[-1]
    pairs = sum(_rows(grouped, grouped.duckdb_sql)["pairs"].to_pylist())
    case = band_in_query_case(files)
    assert pairs == _answer(case, case.duckdb_sql).row_count > 0


def test_a_row_of_the_fanout_has_as_many_results_as_promised(tmp_path: Path) -> None:
    case = fanout_case("fanout", SMALL, write_fanout(SMALL, tmp_path), COUNT_AND_SUM)
    assert sum(_rows(case, case.sql)["pairs"].to_pylist()) == SMALL.results == 3 * 20 * 20
    whole = fanout_of(100_000, batches=4, seed=1)
    assert whole.results == RESULTS_PER_ROW * whole.rows
    assert 0 < whole.rows <= 100_000


def test_each_batch_of_the_fanout_brings_the_same_part_of_every_key(tmp_path: Path) -> None:
    streams = write_fanout(SMALL, tmp_path)
    with DuckDbViews({}, threads=1) as duckdb:
        for stream in streams:
            files = f"read_parquet('{stream.path}/*.parquet', filename = true)"
            counts = duckdb.rows(f"SELECT count(*) AS n FROM {files} GROUP BY k, filename")
            assert counts["n"].to_pylist() == [SMALL.rows_per_key // SMALL.batches] * (SMALL.keys * SMALL.batches)


def test_sums_of_the_fanout_do_not_depend_on_the_order_of_adding(tmp_path: Path) -> None:
    case = fanout_case("fanout", SMALL, write_fanout(SMALL, tmp_path), ALL_SUMS)
    exact = case.sql.replace("SUM(a.weight)", "fsum(a.weight)")
    assert exact != case.sql
    assert same_rows(_rows(case, case.sql), _rows(case, exact))


@pytest.mark.parametrize("broken", [{"keys": 0, "batches": 1}, {"keys": 1, "batches": 3}])
def test_a_fanout_of_parts_of_keys_is_refused(broken: dict[str, int]) -> None:
    with pytest.raises(BenchError, match="do not fill"):
        Fanout(**broken)
