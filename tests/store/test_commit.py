from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.core.errors import ManifestVersionTaken
from dovetail.store.commit import Draft, no_step
from dovetail.store.manifest import ResultFile, State, read_latest, read_manifests

RESULT = ResultFile("q#1", "results/q/x.parquet", 7, 100)


class Stopped(Exception):
    pass


def draft_of(batch: int, dead_paths: tuple[str, ...] = ()) -> Draft:
    return Draft(State(batch, (), {"epoch": 1}), (RESULT,), dead_paths)


def commit(root: Path, draft: Draft) -> None:
    draft.prepare(root, no_step).commit(root, lambda: 42.0, no_step).clean_up(root, no_step)


def test_a_committed_draft_is_the_newest_batch(tmp_path: Path) -> None:
    commit(tmp_path, draft_of(0))
    latest = read_latest(tmp_path)
    assert latest is not None
    manifest, state = latest
    assert (manifest.batch, manifest.results, manifest.committed_at) == (0, (RESULT,), 42.0)
    assert state == State(0, (), {"epoch": 1})


def test_steps_come_in_the_order_of_the_drawing(tmp_path: Path) -> None:
    seen: list[str] = []
    prepared = draft_of(0).prepare(tmp_path, seen.append)
    assert read_latest(tmp_path) is None
    committed = prepared.commit(tmp_path, lambda: 0.0, seen.append)
    assert read_latest(tmp_path) is not None
    committed.clean_up(tmp_path, seen.append)
    assert seen == ["before_state", "before_manifest", "after_manifest", "during_cleanup"]


@pytest.mark.parametrize("step", ["before_state", "before_manifest"])
def test_a_crash_before_the_manifest_leaves_the_batch_undone(tmp_path: Path, step: str) -> None:
    def stop_there(reached: str) -> None:
        if reached == step:
            raise Stopped

    commit(tmp_path, draft_of(0))
    with pytest.raises(Stopped):
        draft_of(1).prepare(tmp_path, stop_there).commit(tmp_path, lambda: 0.0, stop_there)
    assert [manifest.batch for manifest in read_manifests(tmp_path)] == [0]
    commit(tmp_path, draft_of(1))
    assert [manifest.batch for manifest in read_manifests(tmp_path)] == [0, 1]


def test_two_who_prepared_one_batch_cannot_both_commit_it(tmp_path: Path) -> None:
    first, second = (draft_of(0).prepare(tmp_path, no_step) for _ in range(2))
    first.commit(tmp_path, lambda: 1.0, no_step)
    with pytest.raises(ManifestVersionTaken):
        second.commit(tmp_path, lambda: 2.0, no_step)
    latest = read_latest(tmp_path)
    assert latest is not None
    assert latest[0].committed_at == 1.0


def test_cleaning_up_removes_dead_files_and_the_last_state_only(tmp_path: Path) -> None:
    for name in ("dead", "alive"):
        (tmp_path / name).write_text(name)
    commit(tmp_path, draft_of(0))
    commit(tmp_path, draft_of(1, dead_paths=("dead", "gone already")))
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"alive", "manifests/b0000000000.json", "manifests/b0000000001.json", "state/b0000000001.json"}


def test_nothing_is_removed_before_the_manifest_is_there(tmp_path: Path) -> None:
    (tmp_path / "dead").write_text("")
    draft_of(0, dead_paths=("dead",)).prepare(tmp_path, no_step).commit(tmp_path, lambda: 0.0, no_step)
    assert (tmp_path / "dead").exists()
