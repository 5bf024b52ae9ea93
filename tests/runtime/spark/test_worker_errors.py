from __future__ import annotations

import pytest

from dovetail.core.errors import BucketMissing, TaskFailed, WorkerLost
from dovetail.runtime.spark.worker_errors import task_failure

JOB = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
    process()
{raised}

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:1)
Caused by: java.lang.RuntimeException: x
"""


def test_what_a_worker_raised_has_a_culprit_somewhere() -> None:
    found = task_failure(RuntimeError(JOB.format(raised="KeyError: 'x'")))
    assert isinstance(found, TaskFailed)
    assert found.what == "KeyError: 'x'"
    assert not isinstance(found, WorkerLost)


@pytest.mark.parametrize("what", ["Python worker exited unexpectedly (crashed)", "java.lang.OutOfMemoryError"])
def test_a_worker_that_is_gone_is_told_from_one_that_raised(what: str) -> None:
    assert isinstance(task_failure(RuntimeError(f"Job aborted: {what}")), WorkerLost)


def test_an_expression_that_failed_uncharged_has_a_culprit_somewhere() -> None:
    raised = "dovetail.core.errors.EvaluationError: division by zero"
    assert type(task_failure(RuntimeError(JOB.format(raised=raised)))) is TaskFailed


@pytest.mark.parametrize("raised", ["OSError: [Errno 28] No space left on device", "FileNotFoundError: gone"])
def test_a_full_disk_is_nobodys_fault(raised: str) -> None:
    error = RuntimeError(JOB.format(raised=raised))
    assert task_failure(error) is error


def test_our_own_errors_and_those_of_sources_are_what_they_are() -> None:
    missing = task_failure(RuntimeError(JOB.format(raised="dovetail.core.errors.BucketMissing: gone")))
    assert isinstance(missing, BucketMissing)
    source = RuntimeError("[FAILED_READ_FILE] Encountered error while reading file")
    assert task_failure(source) is source
