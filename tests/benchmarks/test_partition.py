"""What suite `partition` asks is what DuckDB answers, whoever ships what; figures have the keys that others read."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from benchmarks.data.cluster_traces import QUERIES as CLUSTER_QUERIES
from benchmarks.data.cluster_traces import ClusterTraces, duckdb_sql
from benchmarks.data.folder_case import Right
from benchmarks.measure import Steps
from benchmarks.options import BenchOptions
from benchmarks.partition.case import MODES, UNSHARED, PartitionCase
from benchmarks.partition.change import longer, placed_in
from benchmarks.peers.duckdb_peer import DuckDbViews
from benchmarks.replay import Replay, StreamFolder, duckdb_views
from benchmarks.report.figure_rows import ROWS_BY_SUITE
from benchmarks.suites import partition
from benchmarks.tpch.fourteen import COLUMNS, QUERIES
from benchmarks.tpch.tables import TpchFiles, growth_is_meant, select_sql, write_tpch
from benchmarks.verify import Answer, same_rows
from benchmarks.workbench import Workbench
from dovetail.testing.local_session import LocalSession

BATCHES = 2


@pytest.fixture(scope="module")
def tpch(tmp_path_factory: pytest.TempPathFactory) -> TpchFiles:
    return write_tpch(0.02, BATCHES, tmp_path_factory.mktemp("tpch"), COLUMNS, 1)


@pytest.fixture(scope="module")
def right(tpch: TpchFiles) -> dict[str, pa.Table]:
    with DuckDbViews(select_sql(tpch), threads=2) as duckdb:
        return {name: duckdb.rows(query.duckdb_sql) for name, query in QUERIES.items()}


def test_there_are_fourteen_and_each_has_an_answer(right: dict[str, pa.Table]) -> None:
    assert len(QUERIES) == 14
    assert all(table.num_rows for table in right.values())


def test_a_query_for_itself_reads_only_what_it_names(tpch: TpchFiles, right: dict[str, pa.Table]) -> None:
    streams = tuple(StreamFolder(table, tpch.path(table), "") for table in COLUMNS)
    sql_by_name = {name: query.sql for name, query in QUERIES.items()}
    answers = {name: Right(Answer(found.num_rows, 0), found) for name, found in right.items()}
    case = PartitionCase("tpch", streams, 1, sql_by_name, answers)
    assert case.sample == tuple(QUERIES)
    named = {stream.name for stream in case.alone("q3").streams}
    assert named == {"customer", "orders", "lineitem"}
    many = PartitionCase("many", (), 1, {}, {str(number): answers["q3"] for number in range(100)})
    assert many.sample == tuple(str(number) for number in range(0, 100, 5))


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != UNSHARED])
def test_the_queries_answer_what_duckdb_does_however_rows_travel(
    tpch: TpchFiles, right: dict[str, pa.Table], mode: str, tmp_path: Path
) -> None:
    session = LocalSession(tmp_path, small_batch_rows=0, **MODES[mode])
    with growth_is_meant():
        for table in COLUMNS:
            session.create_stream(table, tpch.batch(table, 0).schema)
        for name, query in QUERIES.items():
            session.create_query(query.sql, name)
    for batch in range(BATCHES):
        session.push({table: tpch.batch(table, batch) for table in COLUMNS}, splits=2)
    unequal = [name for name in QUERIES if not same_rows(right[name], session.results(name))]
    session.close()
    assert not unequal


def test_the_cluster_is_watched_window_by_window(tmp_path: Path) -> None:
    stream = ClusterTraces(rows=2_000, batch_count=10, jobs=20, machines=10, seed=1).write(tmp_path / "traces")
    files = sorted(stream.path.glob("*.parquet"))
    session = LocalSession(tmp_path / "checkpoint", small_batch_rows=0, **MODES["shared"])
    session.create_stream(stream.name, pq.read_schema(files[0]), "ts", "1 second")
    for name, sql in CLUSTER_QUERIES.items():
        session.create_query(sql, name)
    for file in files:
        session.push({stream.name: pq.read_table(file)})
    with DuckDbViews(duckdb_views([stream]), threads=1) as duckdb:
        for name in CLUSTER_QUERIES:
            expected = duckdb.rows(duckdb_sql(name))
            assert expected.num_rows > 50
            assert same_rows(expected, session.results(name))
    session.close()


def test_a_batch_with_a_new_placement_is_compared_with_its_neighbours() -> None:
    progress: list[dict[str, Any]] = [{"placement": {"placedInBatch": None}}] * 3
    progress += [{"placement": {"placedInBatch": 3}}] * 3
    done = Replay((900.0, 100.0, 110.0, 130.0, 90.0, 100.0), tuple(progress), {}, 1.0, {})
    assert placed_in(done.progress) == [3]
    assert longer(done, 3) == pytest.approx(0.3)


@pytest.mark.spark
@pytest.mark.slow
def test_the_suite_at_its_smallest(spark: SparkSession, tmp_path: Path) -> None:
    options = BenchOptions(quick=True, cores=2, scale=0.002, rows=2_000)
    bench = Workbench(spark, tmp_path, options, Steps(Console(file=StringIO())))
    figures: dict[str, Any] = partition.run(bench)
    assert figures["results_equal"]
    assert list(figures["ajoin"]) == ["1", "20"]
    wanted = {"shipped_unshared", "shipped_shared", "time_unshared_s", "time_shared_s", "imbalance", "results_equal"}
    for case in (figures["tpch"], figures["monitoring"], *figures["ajoin"].values()):
        assert wanted <= case.keys()
    assert figures["tpch"]["shipped_rows_unshared"] > figures["tpch"]["shipped_rows_by_key"]
    assert figures["tpch"]["shipped_rows_by_key"] > figures["tpch"]["shipped_rows_shared"]
    assert figures["monitoring"]["shipped_rows_unshared"] == 0
    assert len(ROWS_BY_SUITE["partition"](figures)) > 10
