"""Folders and files that only their owner reads, whatever the umask."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dovetail.core.private_files import append_private, close_folder, make_private, private_folder, replace_private
from tests.support.faults.full_disk import files_have_at_most


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
    append_private(folder / "lines", "x", syncs=False)
    made = (folder.parent, folder, file, folder / "text", folder / "lines")
    assert [mode(path) for path in made] == [0o700, 0o700, 0o600, 0o600, 0o600]


def test_a_folder_that_is_open_to_others_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    assert mode(folder) == 0o777
    close_folder(folder)
    assert mode(folder) == 0o700


@pytest.mark.parametrize("room", [0, 1, 4])
def test_of_a_text_that_a_full_disk_cuts_off_nothing_stays(tmp_path: Path, room: int) -> None:
    lines = tmp_path / "lines"
    append_private(lines, "one\n", syncs=True)
    with files_have_at_most(len("one\n") + room), pytest.raises(OSError, match="too large"):
        append_private(lines, "two\nthree\n", syncs=True)
    assert lines.read_text() == "one\n"
    append_private(lines, "four\n", syncs=True)
    assert lines.read_text() == "one\nfour\n"


def test_a_draft_that_does_not_fit_does_not_stay_either(tmp_path: Path) -> None:
    text = tmp_path / "text"
    replace_private(text, "old")
    with files_have_at_most(1), pytest.raises(OSError, match="too large"):
        replace_private(text, "new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("text", "old")]
