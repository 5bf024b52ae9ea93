"""Limits that strike whoever asks about one query: a fault that travels with the task into Spark's workers."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

from pyspark import TaskContext

from dovetail.plan.query_limits import BatchLimits, QueryLimits


@dataclass(frozen=True)
class StrikingLimits(BatchLimits):
    """A task that finds something for the query of this name raises, or its process is killed."""

    victim: str = ""
    kills: bool = False

    def of(self, query: str) -> QueryLimits:
        if query.startswith(f"{self.victim}#") and TaskContext.get() is not None:
            if self.kills:
                os.kill(os.getpid(), signal.SIGKILL)
            raise SystemError("struck")
        return super().of(query)
