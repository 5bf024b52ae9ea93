"""Begins the Python workers of a local Spark in the background, while the user's program still declares streams.

The first job with Python tasks starts a daemon and workers, loads the classes of Spark's planner and of Arrow, and
generates code. All of it waits for the first batch otherwise, though the machine is idle before.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import suppress

from pyspark.sql import SparkSession

from dovetail.runtime.spark.executors import runs_tasks_here
from dovetail.runtime.spark.run_spark import pass_on
from dovetail.runtime.spark.streaming_run import aside

_PATIENCE_S = 30.0
_begun: set[str] = set()
_lock = threading.Lock()


def warm_workers(spark: SparkSession) -> tuple[Future[None], ...]:
    """Once for each application on this machine; elsewhere executors come and go, and nobody knows which to warm."""
    context = spark.sparkContext
    if not runs_tasks_here(spark):
        return ()
    with _lock:
        if context.applicationId in _begun:
            return ()
        _begun.add(context.applicationId)
    tasks = context.defaultParallelism
    # A job without a plan is with Python at once, and so is its daemon, which loads while Java plans the other job.
    return (
        aside(lambda: context.parallelize(range(tasks), tasks).foreach(_ignore), "dovetail-warm-daemon"),
        aside(lambda: spark.range(0, tasks, 1, tasks).mapInArrow(pass_on, "id long").collect(), "dovetail-warm-plans"),
    )


def await_warm(warming: tuple[Future[None], ...]) -> None:
    """Before Spark may be stopped: a job that is cut off is told to the user. Whether it went well is of no matter."""
    for job in warming:
        with suppress(Exception):
            job.result(_PATIENCE_S)


def _ignore(_row: int) -> None:
    """The work of a job that is there for its workers."""
