"""What a job's exchanges wrote, by Spark's own metrics: shipped bytes are measured, not estimated."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext

from dovetail.runtime.report import Shuffled

PATIENCE_S = 2.0
_POLL_S = 0.002
_SUCCEEDED = "SUCCEEDED"


class ShuffleMetrics:
    """Of the jobs that run inside `observed`; any thread that runs one has a record of its own."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._tag = f"dovetail-{uuid4().hex}"

    @contextmanager
    def observed(self) -> Iterator[None]:
        self._context.addJobTag(self._tag)
        try:
            yield
        finally:
            self._context.removeJobTag(self._tag)

    def exchanges(self, count: int) -> list[Shuffled]:
        """The last `count` exchanges, the first of them first: earlier ones belong to the streams that were read.

        Spark writes metrics down a moment after its job is done. Nothing, if it does not, or forgot them already.
        """
        deadline = time.monotonic() + PATIENCE_S
        try:
            while (found := self._finished_stages()) is None:
                if time.monotonic() > deadline:
                    return []
                time.sleep(_POLL_S)
        except Py4JJavaError:
            # As few jobs as `spark.ui.retainedJobs` says are remembered.
            return []
        writing = [stage for stage in found if stage.written_bytes]
        return sorted(writing, key=lambda stage: stage.stage)[-count:] if count else []

    def _finished_stages(self) -> list[Shuffled] | None:
        """None while some of it is missing."""
        context: Any = self._context._jsc.sc()  # PySpark has no public way to stage metrics
        store = context.statusStore()
        jobs = [store.job(job) for job in context.statusTracker().getJobIdsForTag(self._tag)]
        if not jobs or any(job.status().toString() != _SUCCEEDED for job in jobs):
            return None
        stages = [job.stageIds() for job in jobs]
        numbers = [each.apply(place) for each in stages for place in range(each.size())]
        return [_shuffled(store.lastStageAttempt(number)) for number in sorted(set(numbers))]


def _shuffled(stage: Any) -> Shuffled:
    return Shuffled(stage.stageId(), stage.shuffleWriteRecords(), stage.shuffleWriteBytes())
