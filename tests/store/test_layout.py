from __future__ import annotations

import json
from pathlib import Path

import pytest

from dovetail.core.errors import CheckpointVersionMismatch, DamagedFile, SessionError
from dovetail.store.layout import LAYOUT_VERSION, bucket_file, manifest_file, open_layout, result_file, slug, state_file


def test_a_new_folder_gets_this_version_and_opens_again(tmp_path: Path) -> None:
    root = tmp_path / "not" / "there" / "yet"
    open_layout(root)
    assert json.loads((root / "dovetail.json").read_text().splitlines()[0]) == {"layout": LAYOUT_VERSION}
    open_layout(root)


@pytest.mark.parametrize("names", [[], [".lock"], [".lock", "spark"]])
def test_a_folder_with_nothing_of_others_in_it_becomes_a_checkpoint(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).touch()
    open_layout(tmp_path)
    assert (tmp_path / "dovetail.json").exists()


def test_a_folder_with_other_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(SessionError, match="is no Dovetail checkpoint") as caught:
        open_layout(tmp_path)
    assert str(tmp_path) in caught.value.what
    assert caught.value.hint
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"layout": 99}', "99"),
        ('{"layout": "1"}', "1"),
    ],
)
def test_another_version_is_refused_with_both_and_what_to_do(tmp_path: Path, text: str, shown: str) -> None:
    (tmp_path / "dovetail.json").write_text(text)
    with pytest.raises(
        CheckpointVersionMismatch, match=f"layout {shown}; this version of Dovetail reads {LAYOUT_VERSION}"
    ) as caught:
        open_layout(tmp_path)
    assert caught.value.hint
    assert "version that wrote it" in caught.value.hint


@pytest.mark.parametrize("text", ["", "{}", "[]", "{"])
def test_a_damaged_layout_file_is_named_with_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / "dovetail.json").write_text(text)
    with pytest.raises(DamagedFile, match=r"layout file dovetail\.json .*: lost is which layout") as caught:
        open_layout(tmp_path)
    assert caught.value.hint
    assert f'{{"layout":{LAYOUT_VERSION}}}' in caught.value.hint
    (tmp_path / "dovetail.json").write_text(f'{{"layout":{LAYOUT_VERSION}}}')
    open_layout(tmp_path)


def test_a_checkpoint_of_the_layout_before_becomes_one_of_this(tmp_path: Path) -> None:
    (tmp_path / "dovetail.json").write_text('{"layout": 7}')
    open_layout(tmp_path)
    assert json.loads((tmp_path / "dovetail.json").read_text().splitlines()[0]) == {"layout": LAYOUT_VERSION}


def test_a_checkpoint_without_its_layout_file_is_no_new_folder(tmp_path: Path) -> None:
    (tmp_path / "manifests").mkdir()
    with pytest.raises(DamagedFile, match=r"layout file dovetail\.json is missing"):
        open_layout(tmp_path)


def test_names_sort_by_batch() -> None:
    batches = [9, 10, 99, 100]
    for name_of in (lambda batch: state_file(batch, "f00"), manifest_file):
        names = [name_of(batch) for batch in batches]
        assert names == sorted(names)


def test_files_of_two_attempts_differ() -> None:
    assert bucket_file("s", 3, 1, "aaa") != bucket_file("s", 3, 1, "bbb")
    assert result_file("q#1", 0, 1, "aaa") != result_file("q#1", 0, 1, "bbb")


def test_two_names_never_share_a_folder() -> None:
    names = ["q#1", "q#2", "q-1", "q_1", "views", "views/window(ts)", "views-window-ts-", "../up", "x" * 60, "x" * 61]
    slugs = [slug(name) for name in names]
    assert len({text.lower() for text in slugs}) == len(names)
    assert all("/" not in text for text in slugs)
