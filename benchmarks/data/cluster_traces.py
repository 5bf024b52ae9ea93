"""Generated traces of a cluster's tasks, after Google's, and two aggregates that watch it, for suite `partition`.

A row is what a task used for a while: job, task, machine, CPU and memory. Jobs have very different numbers of tasks
(Zipf), a task stays on its machine. One query partitions the rows by job, the other by machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.data.workloads import EVENT_TIME_START_US, write_files
from benchmarks.replay import StreamFolder

STREAM = "task_usage"
SCHEMA_DDL = "ts timestamp, job bigint, task int, machine bigint, cpu_milli int, memory_mb int"
SIZE_S, SLIDE_S = 30, 10
LATENESS_US = 1_000_000
"""That of all replays."""
ZIPF = 1.1
TASKS_PER_JOB = 50

_GROUPS = f"GROUP BY window(ts, '{SIZE_S} seconds', '{SLIDE_S} seconds')"
QUERIES = {
    "cpu_by_job": f"SELECT window.start AS since, job, SUM(cpu_milli) AS cpu, COUNT(*) AS samples FROM {STREAM} "
    f"{_GROUPS}, job",
    "memory_by_machine": f"SELECT window.start AS since, machine, MAX(memory_mb) AS most, SUM(memory_mb) AS memory "
    f"FROM {STREAM} {_GROUPS}, machine",
}


@dataclass(frozen=True)
class ClusterTraces:
    """`rows` over `batch_count` batches, each of one slide of the windows."""

    rows: int
    batch_count: int
    jobs: int
    machines: int
    seed: int

    def write(self, folder: Path) -> StreamFolder:
        write_files(folder / STREAM, self._batches())
        return StreamFolder(STREAM, folder / STREAM, SCHEMA_DDL, "ts")

    def _batches(self) -> Iterator[pa.Table]:
        rng = np.random.default_rng(self.seed)
        weights = np.arange(1, self.jobs + 1) ** -ZIPF
        upper = np.cumsum(weights) / weights.sum()
        length = self.rows // self.batch_count
        slide_us = SLIDE_S * 1_000_000
        for batch in range(self.batch_count):
            job = np.searchsorted(upper, rng.random(length))
            task = rng.integers(0, TASKS_PER_JOB, length)
            times = EVENT_TIME_START_US + batch * slide_us + np.sort(rng.integers(0, slide_us, length))
            yield pa.table(
                {
                    "ts": pa.array(times).cast(pa.timestamp("us", tz="UTC")),
                    "job": job,
                    "task": task.astype(np.int32),
                    "machine": (job * 7919 + task * 104_729) % self.machines,
                    "cpu_milli": rng.integers(0, 4_000, length, dtype=np.int32),
                    "memory_mb": rng.integers(1, 16_000, length, dtype=np.int32),
                }
            )


def duckdb_sql(name: str) -> str:
    """The windows of each row spelled out, and of these the ones that are closed in the end."""
    key = {"cpu_by_job": "job", "memory_by_machine": "machine"}[name]
    values = {
        "cpu_by_job": "sum(cpu_milli) AS cpu, count(*) AS samples",
        "memory_by_machine": "max(memory_mb) AS most, sum(memory_mb) AS memory",
    }[name]
    size_us, slide_us = SIZE_S * 1_000_000, SLIDE_S * 1_000_000
    starts = f"epoch_us(ts) // {slide_us} * {slide_us} - unnest(range({SIZE_S // SLIDE_S})) * {slide_us}"
    return (
        f"SELECT make_timestamp(since_us) AS since, {key}, {values} "
        f"FROM (SELECT *, {starts} AS since_us FROM {STREAM}) "
        f"WHERE since_us + {size_us} <= (SELECT max(epoch_us(ts)) - {LATENESS_US} FROM {STREAM}) "
        f"GROUP BY since_us, {key}"
    )
