"""The tasks of a batch run, on Spark or in this process, and report."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from dovetail.engine.batch.begin_batch import Begun
from dovetail.engine.batch.read_messages import read_messages
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.message import Message
from dovetail.runtime.report import TaskReport
from dovetail.store.bucket_file import BucketMeta
from dovetail.store.commit import OnStep

Run = Callable[[BatchTask], list[Message]]
"""Runs a batch's tasks over its rows and returns every message of the last hop."""


@dataclass(frozen=True)
class Ran:
    """`written` are the buckets that the tasks wrote; nobody knows of them before the commit."""

    begun: Begun
    report: TaskReport
    written: tuple[BucketMeta, ...]
    run_s: float


def run_tasks(begun: Begun, run: Run, on_step: OnStep) -> Ran:
    on_step("before_run")
    began_s = time.perf_counter()
    messages = run(begun.task)
    on_step("after_run")
    report, written = read_messages(messages)
    return Ran(begun, report, written, time.perf_counter() - began_s)
