"""Whose machine runs the tasks, by the master's name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from dovetail.core.sync import Syncing
from dovetail.runtime.batch_task import BatchTask
from dovetail.runtime.spark import run_spark as module
from dovetail.runtime.spark.executors import runs_tasks_here


def session_of(master: str | None) -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(master=master))


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2,4]"])
def test_threads_of_the_driver_run_here(master: str) -> None:
    assert runs_tasks_here(session_of(master))


@pytest.mark.parametrize(
    "master", ["local-cluster[2,1,1024]", "spark://host:7077", "yarn", "k8s://https://localhost:443", None]
)
def test_executors_run_elsewhere_even_where_they_happen_to_be_near(master: str | None) -> None:
    assert not runs_tasks_here(session_of(master))


@pytest.mark.parametrize(
    ("master", "wanted", "expected"),
    [
        ("local[2]", Syncing.BEGUN, Syncing.BEGUN),
        ("spark://host:7077", Syncing.BEGUN, Syncing.DONE),
        ("local-cluster[2,1,1024]", Syncing.NOT, Syncing.NOT),
    ],
)
def test_whoever_runs_tasks_elsewhere_has_them_wait_for_the_disk(
    monkeypatch: pytest.MonkeyPatch, master: str, wanted: Syncing, expected: Syncing
) -> None:
    """Batches and backfills alike: what they run is `run_spark`."""
    told: list[Syncing] = []

    def noted(task: BatchTask) -> dict[str, Any]:
        told.append(task.syncing)
        return {}

    monkeypatch.setattr(module, "_without_plan", noted)
    plan: Any = None
    task = BatchTask("", 0, plan, (), (), (), (), "UTC", is_small=True, syncing=wanted)
    rows = MagicMock(sparkSession=session_of(master))
    assert module.run_spark(task, rows, MagicMock(), MagicMock()) == []
    assert told == [expected]
