"""The systems we compare with give the right answers, or say that they were stopped."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.data.workloads import STREAM_NAMES, StreamFiles, Workload, chain_join, interval_join, write_workload
from benchmarks.peers.duckdb_peer import DuckDbPeer
from benchmarks.peers.floor import run_floor
from benchmarks.peers.spark_peer import DEFAULT_STATE_STORE, ROCKSDB_STATE_STORE, StateStore, run_spark, spark_cascade

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> StreamFiles:
    workload = Workload(STREAM_NAMES, seconds=4, rows_per_second=50, key_ranges=(100,) * 6)
    return write_workload(workload, tmp_path_factory.mktemp("data"))


@pytest.mark.slow
@pytest.mark.parametrize("state_store", [DEFAULT_STATE_STORE, ROCKSDB_STATE_STORE], ids=lambda store: store.name)
def test_spark_streams_the_answer_that_duckdb_gives_in_batch(
    spark: SparkSession, files: StreamFiles, tmp_path: Path, state_store: StateStore
) -> None:
    pair = files.only(("a", "b"))
    sql = {"q": interval_join(1)}
    run = run_spark(spark, pair, sql, tmp_path, seconds_per_batch=2, time_limit_s=120, state_store=state_store)
    assert run.time.is_finished
    assert len(run.time.batch_ms) == 2
    with DuckDbPeer(pair, threads=1) as duckdb:
        expected = duckdb.answer(sql["q"])
        assert duckdb.answer_of_files(run.output_by_name["q"]) == expected
        assert expected.row_count > 0


@pytest.mark.slow
@pytest.mark.parametrize("relation_count", [3, 4, 5])
def test_a_spark_cascade_answers_the_flat_chain(
    spark: SparkSession, files: StreamFiles, tmp_path: Path, relation_count: int
) -> None:
    chain = files.only(STREAM_NAMES[:relation_count])
    sql = {"q": spark_cascade(relation_count, 1)}
    run = run_spark(spark, chain, sql, tmp_path, seconds_per_batch=2, time_limit_s=120)
    with DuckDbPeer(chain, threads=1) as duckdb:
        assert duckdb.answer_of_files(run.output_by_name["q"]) == duckdb.answer(chain_join(relation_count, 1))


def test_a_stopped_spark_run_is_not_finished(spark: SparkSession, files: StreamFiles, tmp_path: Path) -> None:
    pair = files.only(("a", "b"))
    run = run_spark(spark, pair, {"q": interval_join(1)}, tmp_path, seconds_per_batch=1, time_limit_s=0.01)
    assert not run.time.is_finished
    assert run.time.done_share < 1.0


def test_the_floor_reads_every_row(spark: SparkSession, files: StreamFiles, tmp_path: Path) -> None:
    run = run_floor(spark, files.only(("a", "b")), ("id", "ts", "x0"), tmp_path, seconds_per_batch=2)
    assert len(run.batch_ms) == 2
