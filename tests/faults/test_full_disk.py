"""A disk that is full while a batch is written: it fails aloud, blames no query, and goes on once there is room."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.faults.small_program import LATER, QUERIES, open_session, push
from dovetail.core.errors import DovetailError
from dovetail.engine.control.registry import QueryState
from dovetail.testing.local_session import LocalSession
from tests.support.faults.full_disk import files_have_at_most

NAMES = ("pairs", "windows", "running", "padded")
BATCHES = 4
FULL_AT = 2
LIMITS = (0, 200, 600, 1200, 1800, 2600, 4000, 8000)
"""Bytes that a file may have: at each another kind of file is the first that has too many."""
DISK_BYTES = 8 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    command = [str(mount), "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(disk)]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a disk of our own can be had by root only")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)  # noqa: S607


def answers_of(session: LocalSession) -> dict[str, list[Any]]:
    tables = {name: session.results(name) for name in NAMES}
    return {
        name: sorted(zip(*(column.to_pylist() for column in table.columns), strict=True), key=repr)
        for name, table in tables.items()
    }


def started(folder: Path) -> LocalSession:
    session = open_session(folder, durability="power")
    for name in NAMES:
        session.create_query(QUERIES[name], name)
    for batch in range(FULL_AT):
        push(session, batch)
    return session


def gone_on(session: LocalSession) -> dict[str, list[Any]]:
    for batch in range(session.engine.head.batch + 1, BATCHES):
        push(session, batch)
    assert {record.state for record in session.engine.queries.records()} == {QueryState.RUNNING}
    return answers_of(session)


@pytest.fixture
def expected(tmp_path: Path) -> dict[str, list[Any]]:
    with started(tmp_path / "exact") as session:
        return gone_on(session)


def assert_is_told(raised: pytest.ExceptionInfo[BaseException]) -> None:
    told = {errno.ENOSPC, errno.EFBIG}
    assert getattr(raised.value, "errno", None) in told, repr(raised.value)


@pytest.mark.parametrize("size_bytes", LIMITS)
@pytest.mark.parametrize("is_reopened", [True, False], ids=["new process", "same process"])
def test_a_file_that_cannot_be_written_costs_no_answer(
    tmp_path: Path, expected: dict[str, list[Any]], size_bytes: int, *, is_reopened: bool
) -> None:
    session = started(tmp_path / "checkpoint")
    with files_have_at_most(size_bytes), pytest.raises((OSError, DovetailError)) as raised:
        push(session, FULL_AT)
    assert_is_told(raised)
    assert session.engine.head.batch == FULL_AT - 1
    if is_reopened:
        session.close()
        session = open_session(tmp_path / "checkpoint")
    assert gone_on(session) == expected
    session.close()


def test_a_query_is_not_accepted_that_cannot_be_noted(tmp_path: Path, expected: dict[str, list[Any]]) -> None:
    session = started(tmp_path / "checkpoint")
    with files_have_at_most(0), pytest.raises((OSError, DovetailError)) as raised:
        session.create_query(LATER["later"], "later")
    assert_is_told(raised)
    assert gone_on(session) == expected
    session.create_query(LATER["later"], "later")
    session.close()


def test_a_disk_that_is_full_anywhere_in_a_batch_costs_no_answer(
    small_disk: Path, expected: dict[str, list[Any]]
) -> None:
    """With more and more room, until the batch fits."""
    session = started(small_disk / "checkpoint")
    ballast = small_disk / "ballast"
    failures = 0
    for pages in range(0, 400, 3):
        with ballast.open("wb") as file:
            file.write(bytes(free_bytes(small_disk)))
        os.truncate(ballast, ballast.stat().st_size - pages * 4096)
        try:
            push(session, FULL_AT)
        except (OSError, DovetailError):
            failures += 1
            assert session.engine.head.batch == FULL_AT - 1
        ballast.unlink()
        session.close()
        session = open_session(small_disk / "checkpoint", durability="power")
        if session.engine.head.batch == FULL_AT:
            break
    assert failures > 3
    assert gone_on(session) == expected
    session.close()


def free_bytes(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_bsize
