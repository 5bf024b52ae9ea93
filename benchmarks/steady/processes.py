"""What the processes of a Spark application cost: the JVM, its Python workers, and the Python that drives them.

Read from /proc, so that no process is asked. Times count in ticks of 10 ms: over some batches that is exact enough.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.options import BenchError

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cpu:
    """Seconds so far; `worker_s` are of all Python workers that were seen, also of those that ended since."""

    worker_s: float
    jvm_s: float
    driver_s: float

    def since(self, before: Cpu) -> Cpu:
        return Cpu(self.worker_s - before.worker_s, self.jvm_s - before.jvm_s, self.driver_s - before.driver_s)


@dataclass(frozen=True)
class _Process:
    parent: int
    began: int
    ticks: int


class Processes:
    def __init__(self, spark: SparkSession) -> None:
        jvm = spark.sparkContext._jvm
        if jvm is None:
            raise BenchError("Spark's JVM is not reachable", hint="run the suite on a local Spark application")
        self._jvm_pid = int(jvm.java.lang.ProcessHandle.current().pid())
        # Spark's daemon lets the kernel forget workers that end, and their times with them.
        self._ticks_by_worker: dict[tuple[int, int], int] = {}

    def cpu(self) -> Cpu:
        """Only what a worker spends between the last reading and its end is missed."""
        by_pid = _processes()
        for pid in self._workers(by_pid):
            self._ticks_by_worker[pid, by_pid[pid].began] = by_pid[pid].ticks
        ticks = sum(self._ticks_by_worker.values())
        return Cpu(ticks / _TICKS_PER_S, by_pid[self._jvm_pid].ticks / _TICKS_PER_S, time.process_time())

    def largest_worker_gb(self) -> tuple[float, float]:
        """Of the Python worker with most memory in use: all of it, and what is not of mapped files."""
        largest = (0.0, 0.0)
        for pid in self._workers(_processes()):
            memory = _memory_kb(pid)
            all_gb = memory.get("VmRSS", 0) / 2**20
            largest = max(largest, (all_gb, all_gb - memory.get("RssFile", 0) / 2**20))
        return largest

    def _workers(self, by_pid: Mapping[int, _Process]) -> set[int]:
        """All processes below the JVM: it starts none but Python's. One that just ended is still among them."""
        found: set[int] = set()
        parents = {self._jvm_pid}
        while parents:
            parents = {pid for pid, process in by_pid.items() if process.parent in parents}
            found |= parents
        return found


def _processes() -> dict[int, _Process]:
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        found[int(stat.parent.name)] = _Process(int(fields[1]), int(fields[19]), int(fields[11]) + int(fields[12]))
    return found


def _memory_kb(pid: int) -> dict[str, int]:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    fields = (line.split() for line in lines if line.endswith(" kB"))
    return {field[0].rstrip(":"): int(field[1]) for field in fields}
