"""Workers of a local Spark begin with all that tasks need."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from dovetail.runtime.spark.warm_workers import await_warm, warm_workers
from dovetail.runtime.spark.worker_daemon import prefer_installed

LOADED = ("dovetail.runtime.spark.run_spark", "numba.np.arraymath", "pandas", "pyspark.worker")


def _beginning(spark: SparkSession) -> tuple[set[str], list[str], list[str], int]:
    """As a new worker is at its first task: what it has not loaded, its daemon's command and threads, its own id."""
    wanted = LOADED

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Spark keeps no worker that leaves rows unread.
        assert sum(len(batch) for batch in batches) == 1
        missing = ",".join(name for name in wanted if name not in sys.modules)
        daemon = Path(f"/proc/{os.getppid()}")
        command = (daemon / "cmdline").read_text().replace("\0", " ")
        threads = ",".join((task / "comm").read_text().strip() for task in (daemon / "task").iterdir())
        yield pa.RecordBatch.from_pydict(
            {"missing": [missing], "command": [command], "threads": [threads], "worker": [os.getpid()]}
        )

    frame = spark.range(0, 1, 1, 1).mapInArrow(look, "missing string, command string, threads string, worker long")
    (row,) = frame.collect()
    return {*filter(None, row.missing.split(","))}, row.command.split(), row.threads.split(","), row.worker


def _kill_worker(spark: SparkSession) -> None:
    def die(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        os.kill(os.getpid(), signal.SIGKILL)
        yield from batches

    with pytest.raises(Py4JError, match="Python worker exited"):
        spark.range(0, 1, 1, 1).mapInArrow(die, "id long").collect()


@pytest.mark.spark
def test_a_worker_begins_with_what_tasks_need_also_in_the_place_of_a_killed_one(spark: SparkSession) -> None:
    for _ in range(2):
        _kill_worker(spark)
        missing, command, _threads, _worker = _beginning(spark)
        assert "dovetail.runtime.spark.worker_daemon" in command
        assert missing == set()


@pytest.mark.spark
def test_the_daemon_forks_while_no_thread_of_python_runs(spark: SparkSession) -> None:
    _missing, _command, threads, _worker = _beginning(spark)
    assert len([name for name in threads if name != "jemalloc_bg_thd"]) == 1


@pytest.mark.spark
def test_workers_of_all_jobs_come_from_one_daemon_with_the_installed_pyspark(spark: SparkSession) -> None:
    def look(_rows: Iterator[int]) -> Iterator[tuple[int, str]]:
        yield os.getppid(), str(sys.modules["pyspark"].__file__)

    def parent(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        assert sum(len(batch) for batch in batches) == 1
        yield pa.RecordBatch.from_pydict({"daemon": [os.getppid()]})

    ((daemon, file),) = spark.sparkContext.parallelize([0], 1).mapPartitions(look).collect()
    assert ".zip" not in file
    assert spark.range(0, 1, 1, 1).mapInArrow(parent, "daemon long").collect()[0].daemon == daemon


def test_a_zipped_pyspark_is_kept_where_another_one_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [str(tmp_path / "spark" / "python" / "lib" / "pyspark.zip"), *sys.path]
    monkeypatch.setattr(sys, "path", list(paths))
    prefer_installed()
    assert sys.path == paths


@pytest.mark.spark
def test_workers_are_kept_from_task_to_task(spark: SparkSession) -> None:
    workers = [_beginning(spark)[3] for _ in range(6)]
    assert len(set(workers)) < len(workers)


@pytest.mark.spark
def test_a_worker_on_which_spark_hangs_up_prints_nothing(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    def many(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield from (pa.RecordBatch.from_pydict({"id": range(100_000)}) for _ in range(50))

    for _ in range(3):
        assert len(spark.range(0, 4, 1, 4).mapInArrow(many, "id long").take(5)) == 5
    spark.range(0, 1, 1, 1).mapInArrow(many, "id long").count()
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.spark
def test_workers_are_begun_once_for_an_application(spark: SparkSession) -> None:
    await_warm(warm_workers(spark))
    assert warm_workers(spark) == ()


@pytest.mark.spark
def test_workers_look_into_no_zip_before_a_task(spark: SparkSession) -> None:
    def look(_rows: Iterator[int]) -> Iterator[list[str]]:
        yield [path for path in sys.path_importer_cache if path.endswith(".zip") and Path(path).is_file()]

    assert spark.sparkContext.parallelize([1], 1).mapPartitions(look).collect() == [[]]
