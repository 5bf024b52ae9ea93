"""As many executors as the partitions need: asked of the cluster manager, or left to Spark's dynamic allocation.

A partition is a task, so partitions over an executor's task slots is the number of executors that can be busy. They
are asked for between two batches, when none of our tasks runs; state is in files, so one that leaves takes nothing
along, and one that joins needs nothing but the plan.
"""

from __future__ import annotations

import logging
from enum import Enum
from typing import Any

from pyspark.sql import SparkSession

_log = logging.getLogger("dovetail")
_DRIVER = "driver"


class Manager(Enum):
    """Who decides how many executors there are."""

    NOBODY = "local master: there are no executors, partitions are threads of this process"
    SPARK = "spark.dynamicAllocation.enabled: Spark adds and removes executors by itself"
    DOVETAIL = "Dovetail asks the cluster manager for as many as the partitions need"


class Executors:
    """The executors of one Spark application, made to follow the number of partitions."""

    def __init__(self, spark: SparkSession) -> None:
        context = spark.sparkContext
        conf = context.getConf()
        self._context = context
        self._slots = task_slots(conf.get("spark.executor.cores"), conf.get("spark.task.cpus"), context.master or "")
        self.manager = _manager(context.master or "", is_dynamic=conf.get("spark.dynamicAllocation.enabled") == "true")
        self._wanted: int | None = None
        self._is_said = False

    @property
    def cores(self) -> int | None:
        """How many tasks can ever run at once; None where executors can be had for more of them."""
        return self._context.defaultParallelism if self.manager is Manager.NOBODY else None

    @property
    def running(self) -> int | None:
        """None on a local master."""
        return None if self.manager is Manager.NOBODY else len(self._running())

    def follow(self, partitions: int) -> None:
        """Have executors for so many tasks at once; those that are too many leave, the youngest first."""
        if self.manager is not Manager.DOVETAIL:
            if not self._is_said:
                _log.info("the number of executors is not changed: %s", self.manager.value)
                self._is_said = True
            return
        wanted = executors_for(partitions, self._slots)
        if wanted == self._wanted:
            return
        context, jvm = self._scala_context(), self._context._jvm
        assert jvm is not None  # a running context has a JVM
        surplus = sorted(self._running(), key=int)[wanted:]
        if surplus:
            # Before the request: killing lowers the number that Spark asks for by as many.
            ids = jvm.java.util.ArrayList()
            for each in surplus:
                ids.add(each)
            context.killExecutors(jvm.scala.jdk.javaapi.CollectionConverters.asScala(ids).toSeq())
        no_hosts = getattr(getattr(jvm.scala.collection.immutable, "Map$"), "MODULE$").empty()
        if context.requestTotalExecutors(wanted, 0, no_hosts):
            self._wanted = wanted
        else:
            _log.warning("the cluster manager did not take the request for %d executors", wanted)

    def _running(self) -> list[str]:
        found = self._scala_context().getExecutorIds()
        names = [str(found.apply(place)) for place in range(found.size())]
        return [name for name in names if name != _DRIVER]

    def _scala_context(self) -> Any:
        # PySpark has no call of its own for executors; these are developer APIs of Spark's context.
        return self._context._jsc.sc()


def executors_for(partitions: int, slots: int) -> int:
    """So many that every partition's task can run at once.

    >>> executors_for(partitions=5, slots=2)
    3
    """
    return -(-partitions // slots)


def task_slots(executor_cores: str | None, task_cpus: str | None, master: str) -> int:
    """How many tasks an executor runs at once; an executor of `local-cluster[n,cores,memory]` has all of a worker's.

    >>> task_slots(None, None, "local-cluster[3,2,1024]"), task_slots("4", "2", "yarn"), task_slots(None, None, "yarn")
    (2, 2, 1)
    """
    if executor_cores is None and master.startswith("local-cluster["):
        executor_cores = master.removeprefix("local-cluster[").split(",")[1]
    return max(1, int(executor_cores or 1) // int(task_cpus or 1))


def runs_tasks_here(spark: SparkSession) -> bool:
    """Whether tasks run on the driver's machine, and always will."""
    return _is_local(spark.sparkContext.master or "")


def _is_local(master: str) -> bool:
    return master.startswith("local") and not master.startswith("local-cluster")


def _manager(master: str, *, is_dynamic: bool) -> Manager:
    if _is_local(master):
        return Manager.NOBODY
    return Manager.SPARK if is_dynamic else Manager.DOVETAIL
