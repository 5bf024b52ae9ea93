"""Folders of small files: what cannot be read is no empty folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.core.errors import DamagedFile
from dovetail.core.sealed_file import FileKind, files_in

KIND = FileKind("note", "what was noted")


def test_files_come_by_name_and_none_where_there_is_no_folder(tmp_path: Path) -> None:
    for name in ("b2.json", "b1.json", "b1.draft", "c.json"):
        (tmp_path / name).touch()
    assert [path.name for path in files_in(tmp_path, "b*.json", KIND)] == ["b1.json", "b2.json"]
    assert files_in(tmp_path / "none", "*.json", KIND) == []


def test_a_folder_that_cannot_be_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("a file where the folder was")
    with pytest.raises(DamagedFile, match="the folder of note files cannot be read: Not a directory") as caught:
        files_in(tmp_path / "notes", "*.json", KIND)
    assert caught.value.where == str(tmp_path / "notes")
