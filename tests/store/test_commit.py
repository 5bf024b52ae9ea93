from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.core.errors import ManifestVersionTaken
from dovetail.store.chain import Chain
from dovetail.store.commit import Draft, no_step
from dovetail.store.manifest import manifest_batches, read_manifest, read_manifests
from dovetail.store.state_record import State, read_state


class Stopped(Exception):
    pass


def opened(root: Path) -> tuple[Chain, State | None]:
    chain = Chain(root, syncs=False)
    return chain, chain.open()


def draft_of(batch: int, dead_paths: tuple[str, ...] = ()) -> Draft:
    return Draft(State(batch, (), {"epoch": 1}), (), dead_paths)


def commit(chain: Chain, draft: Draft) -> None:
    draft.prepare(chain, no_step).commit(chain, lambda: 42.0, no_step).clean_up(chain, no_step)


def files_in(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def test_a_committed_draft_is_the_newest_batch(tmp_path: Path) -> None:
    commit(opened(tmp_path)[0], draft_of(0))
    chain, state = opened(tmp_path)
    assert chain.newest is not None
    assert (chain.newest.batch, chain.newest.committed_at) == (0, 42.0)
    assert state == State(0, (), {"epoch": 1})


def test_steps_come_in_the_order_of_the_drawing(tmp_path: Path) -> None:
    seen: list[str] = []
    chain, _ = opened(tmp_path)
    prepared = draft_of(0).prepare(chain, seen.append)
    assert manifest_batches(tmp_path) == []
    committed = prepared.commit(chain, lambda: 0.0, seen.append)
    assert manifest_batches(tmp_path) == [0]
    committed.clean_up(chain, seen.append)
    assert seen == ["before_state", "before_manifest", "after_manifest", "during_cleanup"]


@pytest.mark.parametrize("step", ["before_state", "before_manifest"])
def test_a_crash_before_the_manifest_leaves_the_batch_undone(tmp_path: Path, step: str) -> None:
    def stop_there(reached: str) -> None:
        if reached == step:
            raise Stopped

    chain, _ = opened(tmp_path)
    commit(chain, draft_of(0))
    with pytest.raises(Stopped):
        draft_of(1).prepare(chain, stop_there).commit(chain, lambda: 0.0, stop_there)
    assert manifest_batches(tmp_path) == [0]
    commit(chain, draft_of(1))
    assert [manifest.batch for manifest in read_manifests(tmp_path)] == [0, 1]


def test_of_two_who_got_past_the_lock_one_commits_and_the_checkpoint_stays_whole(tmp_path: Path) -> None:
    commit(opened(tmp_path)[0], draft_of(0))
    first, second = opened(tmp_path)[0], opened(tmp_path)[0]
    prepared = [draft_of(1).prepare(chain, no_step) for chain in (first, second)]
    prepared[0].commit(first, lambda: 1.0, no_step)
    with pytest.raises(ManifestVersionTaken, match="batch 1"):
        prepared[1].commit(second, lambda: 2.0, no_step)
    chain, state = opened(tmp_path)
    assert state == State(1, (), {"epoch": 1})
    assert chain.newest is not None
    assert (chain.newest.committed_at, chain.newest.writer) == (1.0, first.token)
    assert not [path for path in files_in(tmp_path) if path.endswith(".draft")]


def test_a_commit_that_is_there_already_and_ones_own_is_done(tmp_path: Path) -> None:
    chain, _ = opened(tmp_path)
    prepared = draft_of(0).prepare(chain, no_step)
    prepared.commit(chain, lambda: 1.0, no_step)
    chain.newest = None  # as if it had not heard of its success
    prepared.commit(chain, lambda: 1.0, no_step)
    assert manifest_batches(tmp_path) == [0]


def test_every_manifest_names_the_one_before(tmp_path: Path) -> None:
    for batch in range(3):
        commit(opened(tmp_path)[0], draft_of(batch))
    first, *later = read_manifests(tmp_path)
    assert (first.previous, first.first_batch) == (None, 0)
    assert [(each.previous.batch if each.previous else None, each.first_batch) for each in later] == [(0, 0), (1, 0)]


def test_the_two_newest_states_and_what_they_need_are_kept(tmp_path: Path) -> None:
    for name in ("dead in 1", "dead in 2", "alive"):
        (tmp_path / name).write_text(name)
    chain, _ = opened(tmp_path)
    commit(chain, draft_of(0))
    commit(chain, draft_of(1, dead_paths=("dead in 1", "gone already")))
    assert (tmp_path / "dead in 1").exists()
    commit(chain, draft_of(2, dead_paths=("dead in 2",)))
    states = {read_manifest(tmp_path, batch).state_path for batch in (1, 2)}
    manifests = {f"manifests/b000000000{batch}.json" for batch in range(3)}
    assert files_in(tmp_path) == {"alive", "dead in 2", *states, *manifests}
    for batch in (1, 2):
        assert read_state(tmp_path, read_manifest(tmp_path, batch)).batch == batch


def test_what_a_batch_made_superfluous_goes_after_a_restart_too(tmp_path: Path) -> None:
    (tmp_path / "dead").write_text("")
    for batch in range(3):
        commit(opened(tmp_path)[0], draft_of(batch, dead_paths=("dead",) if batch == 1 else ()))
    assert not (tmp_path / "dead").exists()
    assert len(list((tmp_path / "state").iterdir())) == 2
