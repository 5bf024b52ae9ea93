"""A checkpoint opens at its newest batch; if that is damaged, at the one before; else it says what is damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.core.errors import DamagedFile
from dovetail.store.chain import Chain
from dovetail.store.commit import Draft, no_step
from dovetail.store.manifest import read_manifest
from dovetail.store.state_record import State


def commit(root: Path, count: int) -> None:
    chain = Chain(root, syncs=False)
    chain.open()
    for batch in range(count):
        draft = Draft(State(batch, (), {"epoch": batch}), (), ())
        draft.prepare(chain, no_step).commit(chain, lambda: 0.0, no_step).clean_up(chain, no_step)


def manifest_path(root: Path, batch: int) -> Path:
    return root / f"manifests/b{batch:010d}.json"


def opened_batch(root: Path) -> int | None:
    state = Chain(root, syncs=False).open()
    return None if state is None else state.batch


@pytest.mark.parametrize("kind", ["manifest", "state"])
@pytest.mark.parametrize("how", ["flip", "truncate", "empty", "delete"])
def test_a_damaged_newest_batch_is_set_aside_and_the_one_before_goes_on(tmp_path: Path, kind: str, how: str) -> None:
    commit(tmp_path, 4)
    path = manifest_path(tmp_path, 3) if kind == "manifest" else tmp_path / read_manifest(tmp_path, 3).state_path
    content = path.read_bytes()
    if how == "delete":
        path.unlink()
    else:
        damaged = {"flip": content[:9] + bytes([content[9] ^ 4]) + content[10:], "truncate": content[:20], "empty": b""}
        path.write_bytes(damaged[how])
    assert opened_batch(tmp_path) == 2
    assert not manifest_path(tmp_path, 3).exists()
    assert opened_batch(tmp_path) == 2


def test_a_newest_manifest_with_the_bytes_of_the_first_one_is_set_aside(tmp_path: Path) -> None:
    commit(tmp_path, 2)
    manifest_path(tmp_path, 1).write_bytes(manifest_path(tmp_path, 0).read_bytes())
    assert opened_batch(tmp_path) == 0
    # The batch can be committed again.
    assert not manifest_path(tmp_path, 1).exists()


def test_what_is_set_aside_is_kept(tmp_path: Path) -> None:
    commit(tmp_path, 2)
    manifest_path(tmp_path, 1).write_text("")
    Chain(tmp_path, syncs=False).open()
    (kept,) = (tmp_path / "damaged").iterdir()
    assert kept.name.startswith("b0000000001.json")


@pytest.mark.parametrize("batch", [0, 1, 2])
def test_a_manifest_that_is_gone_from_the_middle_is_named(tmp_path: Path, batch: int) -> None:
    commit(tmp_path, 4)
    manifest_path(tmp_path, batch).unlink()
    with pytest.raises(DamagedFile, match=rf"manifest b{batch:010d}\.json is missing") as caught:
        opened_batch(tmp_path)
    assert "backup" in str(caught.value)


def test_if_both_are_damaged_the_newest_is_told(tmp_path: Path) -> None:
    commit(tmp_path, 3)
    for batch in (1, 2):
        (tmp_path / read_manifest(tmp_path, batch).state_path).unlink()
    with pytest.raises(DamagedFile, match="state record b0000000002"):
        opened_batch(tmp_path)
    assert manifest_path(tmp_path, 2).exists()


def test_a_checkpoint_that_lost_all_manifests_is_not_a_new_one(tmp_path: Path) -> None:
    commit(tmp_path, 3)
    for batch in range(3):
        manifest_path(tmp_path, batch).unlink()
    with pytest.raises(DamagedFile, match="there is no manifest, but state/b000000000"):
        opened_batch(tmp_path)


def test_a_first_batch_that_did_not_commit_leaves_a_new_checkpoint(tmp_path: Path) -> None:
    chain = Chain(tmp_path, syncs=False)
    chain.open()
    Draft(State(0, (), {}), (), ()).prepare(chain, no_step)
    assert opened_batch(tmp_path) is None
