"""Folders and files that only their owner reads, whatever the umask."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dovetail.core.private_files import close_folder, make_private, private_folder, replace_private


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_what_is_made_is_the_owners_alone(tmp_path: Path) -> None:
    folder = private_folder(tmp_path / "a" / "b")
    file = make_private(folder / "file")
    replace_private(folder / "text", "x")
    assert [mode(path) for path in (folder.parent, folder, file, folder / "text")] == [0o700, 0o700, 0o600, 0o600]


def test_a_folder_that_is_open_to_others_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    assert mode(folder) == 0o777
    close_folder(folder)
    assert mode(folder) == 0o700
