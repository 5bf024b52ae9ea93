from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dovetail.core.errors import CheckpointLocked
from dovetail.store.lock import CheckpointLock

HOLD_AND_WAIT = """
import sys
from pathlib import Path
from dovetail.store.lock import CheckpointLock
lock = CheckpointLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_lock_is_refused_and_names_the_holder(tmp_path: Path) -> None:
    lock = CheckpointLock(tmp_path)
    with pytest.raises(CheckpointLocked, match=f"in use by process {os.getpid()} on ") as caught:
        CheckpointLock(tmp_path)
    assert caught.value.hint
    lock.release()


def test_a_refused_lock_does_not_break_the_one_that_is_held(tmp_path: Path) -> None:
    lock = CheckpointLock(tmp_path)
    for _ in range(2):
        with pytest.raises(CheckpointLocked, match=f"process {os.getpid()}"):
            CheckpointLock(tmp_path)
    lock.release()


def test_a_released_lock_is_free_and_can_be_released_again(tmp_path: Path) -> None:
    first = CheckpointLock(tmp_path)
    first.release()
    second = CheckpointLock(tmp_path)
    first.release()
    with pytest.raises(CheckpointLocked):
        CheckpointLock(tmp_path)
    second.release()


def test_two_checkpoints_have_two_locks(tmp_path: Path) -> None:
    locks = [CheckpointLock(tmp_path / name) for name in ("one", "two")]
    with pytest.raises(CheckpointLocked):
        CheckpointLock(tmp_path / "two")
    for lock in locks:
        lock.release()


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD_AND_WAIT, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(CheckpointLocked, match=f"process {process.pid} on "):
            CheckpointLock(tmp_path)
        process.kill()
    CheckpointLock(tmp_path).release()
