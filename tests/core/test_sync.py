"""Who waits for the disk: the task, whoever commits, or nobody."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Event

import pytest

from dovetail.core import sync as module
from dovetail.core.sync import Syncing, sync_all, sync_later, syncing_files


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of all files that were synced so far."""
    names: list[str] = []
    real = os.fsync

    def noted(opened: int) -> None:
        real(opened)
        names.append(Path(f"/proc/self/fd/{opened}").resolve().name)

    monkeypatch.setattr(os, "fsync", noted)
    return names


def _written(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(bytes(1 << 16))
    return path


def test_a_task_that_waits_ends_with_its_files_on_the_disk(tmp_path: Path, synced: list[str]) -> None:
    with syncing_files(Syncing.DONE):
        for name in "abc":
            sync_later(_written(tmp_path, name))
    assert sorted(synced) == ["a", "b", "c"]


def test_a_task_that_only_begins_leaves_the_waiting_and_the_errors_to_who_commits(
    tmp_path: Path, synced: list[str]
) -> None:
    with syncing_files(Syncing.BEGUN):
        sync_later(_written(tmp_path, "a"))
        gone = _written(tmp_path, "gone")
        sync_later(gone)
        gone.unlink()
    assert synced == []
    sync_all([tmp_path / "a"])
    assert synced == ["a"]


def test_the_disk_is_told_to_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    both, real = Event(), module._begins_to_write()

    def noted(opened: int, *given: int) -> int:
        begun.append(Path(f"/proc/self/fd/{opened}").resolve().name)
        if len(begun) == 2:
            both.set()
        return 0 if real is None else int(real(opened, *given))

    monkeypatch.setattr(module, "_begins_to_write", lambda: noted)
    with syncing_files(Syncing.BEGUN):
        for name in "ab":
            sync_later(_written(tmp_path, name))
    assert both.wait(60)
    assert sorted(begun) == ["a", "b"]


def test_nothing_is_synced_where_nobody_wants_it_or_outside_of_a_task(tmp_path: Path, synced: list[str]) -> None:
    with syncing_files(Syncing.NOT):
        sync_later(_written(tmp_path, "a"))
    sync_later(_written(tmp_path, "b"))
    assert synced == []


def test_on_another_machine_the_task_waits_itself() -> None:
    assert [how.by_task for how in Syncing] == [Syncing.NOT, Syncing.DONE, Syncing.DONE]
