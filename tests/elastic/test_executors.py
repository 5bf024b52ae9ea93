"""Executors of a cluster on this machine join and leave with the load, and one is killed: the same answers (B9, D3)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROGRAM = Path(__file__).parent / "elastic_program.py"
SOURCE = Path(__file__).parents[2] / "src"
PATIENCE_S = 400.0


class Run:
    """The program in a session of its own, so that all it starts can be found and ended."""

    def __init__(
        self, folder: Path, rows_by_batch: list[int], master: str, max_partitions: int, **settings: str
    ) -> None:
        self._folder = folder
        write_streams(folder / "data", rows_by_batch)
        environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
        self._log = (folder / "log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), master, str(folder), str(max_partitions), json.dumps(settings)],
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
            env=environment,
        )

    @property
    def units(self) -> list[dict[str, Any]]:
        path = self._folder / "units"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def executors(self) -> list[int]:
        """Process ids."""
        listed = subprocess.run(["ps", "-ww", "-e", "-o", "pid,sid,args"], capture_output=True, text=True, check=True)  # noqa: S607
        found = []
        for line in listed.stdout.splitlines()[1:]:
            pid, session, args = line.split(None, 2)
            if int(session) == self.process.pid and "CoarseGrainedExecutorBackend" in args:
                found.append(int(pid))
        return found

    def await_batches(self, count: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while len(self.units) < count:
            assert self.process.poll() is None, self.tail()
            assert time.monotonic() < deadline, f"no progress: {self.tail()}"
            time.sleep(0.05)

    def finish(self) -> dict[str, int]:
        assert self.process.wait(PATIENCE_S) == 0, self.tail()
        outcome: dict[str, int] = json.loads((self._folder / "wrong").read_text())
        return outcome

    def tail(self) -> str:
        return (self._folder / "log").read_text()[-3000:]

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self._log.close()


def write_streams(folder: Path, rows_by_batch: list[int]) -> None:
    """A second of event time a file; the age of files is their order."""
    chance = np.random.default_rng(8)
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        for batch, rows in enumerate(rows_by_batch):
            times = 1_700_000_000_000_000 + batch * 1_000_000 + np.sort(chance.integers(0, 1_000_000, rows))
            table = pa.table(
                {
                    "id": np.arange(rows) + batch * 100_000,
                    "ts": pa.array(times).view(pa.timestamp("us", tz="UTC")),
                    "k": chance.integers(0, 500, rows).astype(np.int32),
                }
            )
            path = folder / name / f"{batch:03d}.parquet"
            pq.write_table(table, path)
            os.utime(path, (1_700_000_000 + batch, 1_700_000_000 + batch))


@pytest.fixture
def runs() -> Iterator[list[Run]]:
    started: list[Run] = []
    yield started
    for run in started:
        run.end()


def assert_right(outcome: dict[str, int]) -> None:
    assert outcome["answers"] > 1000
    assert outcome["wrong"] == 0


def test_executors_join_and_leave_and_one_is_killed_in_mid_run(tmp_path: Path, runs: list[Run]) -> None:
    run = Run(tmp_path, [*[500] * 2, *[2500] * 4, *[200] * 8], "local-cluster[2,1,1024]", 2)
    runs.append(run)
    run.await_batches(5)
    joined = run.executors
    assert len(joined) == 2
    os.kill(joined[0], signal.SIGKILL)
    assert_right(run.finish())
    units = run.units
    partitions = [entry["partitions"] for entry in units]
    assert sorted(set(partitions)) == [1, 2]
    assert partitions[0] == partitions[-1] == 1
    assert [entry["nextExecutors"] for entry in units] == [entry["nextPartitions"] for entry in units]
    assert [entry["movedRows"] for entry in units] == [0] * len(units)


def test_executors_come_and_go_again_and_again(tmp_path: Path, runs: list[Run]) -> None:
    rates = [*[500] * 3, *[3500] * 6, *[200] * 8]
    run = Run(tmp_path, [*rates, *rates], "local-cluster[3,1,1024]", 3)
    runs.append(run)
    for batches in (6, 9, 24):
        run.await_batches(batches)
        os.kill(run.executors[-1], signal.SIGKILL)
    assert_right(run.finish())
    executors = [entry["nextExecutors"] for entry in run.units]
    assert {1, 3} <= set(executors)
    assert sum(was != now for was, now in pairwise(executors)) >= 4


def test_with_dynamic_allocation_executors_are_left_to_spark(tmp_path: Path, runs: list[Run]) -> None:
    """With the settings of docs/elastic.md. Whether Spark adds one depends on how long tasks wait."""
    settings = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.timeout": "60s",
        "spark.dynamicAllocation.executorIdleTimeout": "120s",
        "spark.dynamicAllocation.minExecutors": "1",
        "spark.dynamicAllocation.maxExecutors": "2",
    }
    run = Run(tmp_path, [*[500] * 2, *[2500] * 12], "local-cluster[2,1,1024]", 2, **settings)
    runs.append(run)
    assert_right(run.finish())
    assert [entry["partitions"] for entry in run.units][-1] == 2
    assert {entry["executors"] for entry in run.units} <= {1, 2}
