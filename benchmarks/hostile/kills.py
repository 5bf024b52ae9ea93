"""Faults that travel with a query into Spark's workers, and workers that die for no query's fault."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import TaskContext

from dovetail.plan.query_limits import BatchLimits, QueryLimits

KILLS, RAISES, FILLS = "strike_kill", "strike_raise", "strike_fill"


@dataclass(frozen=True)
class StrikingLimits(BatchLimits):
    """A task that finds something for a query of one of these names is killed, or fails without a word whose it was."""

    def of(self, query: str) -> QueryLimits:
        name = query.partition("#")[0]
        if TaskContext.get() is not None:
            if name.startswith(KILLS):
                os.kill(os.getpid(), signal.SIGKILL)
            if name.startswith(RAISES):
                raise SystemError("struck")
            if name.startswith(FILLS):
                raise MemoryError
        return super().of(query)


@contextmanager
def striking() -> Iterator[None]:
    """While this lasts, queries of those names strike."""
    # Workers load this module with a query's limits: they shall not load the driver's side for it.
    from dovetail.engine.batch import make_task  # noqa: PLC0415

    names = vars(make_task)
    usual: Callable[..., BatchLimits] = names["batch_limits"]

    def limits(*args: Any) -> BatchLimits:
        made = usual(*args)
        return StrikingLimits(made.usual, made.own_by_query)

    names["batch_limits"] = limits
    try:
        yield
    finally:
        names["batch_limits"] = usual


def worker_pids(jvm_pid: int) -> list[int]:
    """Python workers below a JVM: the children of its daemons."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
    daemons = {pid for pid, parent in parents.items() if parent == jvm_pid}
    return [pid for pid, parent in parents.items() if parent in daemons]


def kill_workers(jvm_pid: int) -> int:
    """All workers of this moment, at once; how many there were."""
    pids = worker_pids(jvm_pid)
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return len(pids)
