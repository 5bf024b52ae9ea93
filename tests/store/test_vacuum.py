from __future__ import annotations

import os
from pathlib import Path

import pytest

from dovetail.core.errors import DamagedFile
from dovetail.store import vacuum as vacuum_module
from dovetail.store.bad_rows import BadFile
from dovetail.store.bucket_file import BucketMeta
from dovetail.store.chain import Chain
from dovetail.store.commit import Draft, no_step
from dovetail.store.layout import (
    adopted_file,
    bad_rows_file,
    bucket_file,
    result_file,
    shared_answers_file,
    shared_bucket_file,
    state_file,
)
from dovetail.store.manifest import Arrival, Manifest, ResultPart, read_manifests
from dovetail.store.state_record import State, read_state
from dovetail.store.vacuum import DEFAULT_RETENTION_S, vacuum

NOW = 1_000_000.0
NAMED_BUCKET, ORPHAN_BUCKET = "buckets/s/named.arrow", "buckets/s/orphan.arrow"
OLD_RESULT, ORPHAN_RESULT = "results/q/old.parquet", "results/q/orphan.parquet"
ORPHAN_STATE, DRAFT = "state/b0000000001-f00.json", "manifests/b0000000001.f00.draft"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two batches: the first has answers, the second the bucket; and files that nobody names."""
    chain = Chain(tmp_path, syncs=False)
    bucket = BucketMeta("s", NAMED_BUCKET, 0, 0, 0, 0, 1, 2, 3, None, None, (), (), True, ())
    for batch, buckets, results in ((0, (), (ResultPart("q", OLD_RESULT, 1, 1),)), (1, (bucket,), ())):
        draft = Draft(State(batch, buckets, {}), results, ())
        draft.prepare(chain, no_step).commit(chain, lambda: NOW, no_step)
    for name in (
        NAMED_BUCKET,
        ORPHAN_BUCKET,
        OLD_RESULT,
        ORPHAN_RESULT,
        ORPHAN_STATE,
        DRAFT,
        "changelog/0000000001.json",
        "spark/offsets/0",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1234")
    set_age(tmp_path, 2 * DEFAULT_RETENTION_S)
    return tmp_path


def set_age(root: Path, age_s: float) -> None:
    for path in root.rglob("*"):
        os.utime(path, (NOW - age_s, NOW - age_s))


def files_in(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


# The states of both batches stay: a start falls back to the older one.
ORPHANS = {ORPHAN_BUCKET, ORPHAN_RESULT, ORPHAN_STATE, DRAFT}


def test_files_that_no_manifest_names_go_and_all_others_stay(root: Path) -> None:
    before = files_in(root)
    report = vacuum(root, dry_run=False, clock=lambda: NOW)
    assert set(report.paths) == ORPHANS
    assert files_in(root) == before - ORPHANS
    assert not report.is_dry_run


def test_a_dry_run_lists_and_removes_nothing(root: Path) -> None:
    before = files_in(root)
    report = vacuum(root, dry_run=True, clock=lambda: NOW)
    assert report.is_dry_run
    assert set(report.paths) == ORPHANS
    assert files_in(root) == before
    assert report.size_bytes == sum((root / path).stat().st_size for path in ORPHANS)


@pytest.mark.parametrize(("age_s", "is_removed"), [(59.0, False), (60.0, True)])
def test_files_younger_than_the_retention_stay(root: Path, age_s: float, is_removed: bool) -> None:
    set_age(root, age_s)
    report = vacuum(root, dry_run=False, retention_s=60.0, clock=lambda: NOW)
    assert bool(report.paths) == is_removed
    assert (root / ORPHAN_BUCKET).exists() != is_removed


def test_an_hour_is_kept_by_default(root: Path) -> None:
    set_age(root, 3599.0)
    assert vacuum(root, dry_run=True, clock=lambda: NOW).paths == ()
    assert vacuum(root, dry_run=True, clock=lambda: NOW + 1).paths


def test_a_checkpoint_without_a_batch_has_only_orphans(tmp_path: Path) -> None:
    (tmp_path / "buckets" / "s").mkdir(parents=True)
    (tmp_path / ORPHAN_BUCKET).write_text("")
    assert vacuum(tmp_path, dry_run=True, retention_s=0.0).paths == (ORPHAN_BUCKET,)


def test_an_empty_folder_is_no_trouble(tmp_path: Path) -> None:
    assert vacuum(tmp_path, dry_run=False).paths == ()


def test_a_file_that_a_running_batch_removes_meanwhile_is_no_trouble(root: Path) -> None:
    def clock() -> float:
        for path in ORPHANS:
            (root / path).unlink(missing_ok=True)
        return NOW

    vacuum(root, dry_run=False, clock=clock)
    assert not ORPHANS & files_in(root)


def test_files_of_a_batch_that_is_not_committed_yet_stay_however_old_they_are(root: Path) -> None:
    def written_by(batch: int) -> set[str]:
        shared = shared_answers_file(0, 0, "a")
        return {
            bucket_file("s", batch, 0, "a"),
            shared_bucket_file(batch, "a"),
            result_file("q#1", batch, 0, "a"),
            shared_answers_file(batch, 0, "a"),
            adopted_file(shared, "q#1", batch),
            adopted_file("results/q-1/b0000000000-p0-a.parquet", "q#1", batch),
            bad_rows_file("s", batch, "a"),
            state_file(batch, "a"),
            f"manifests/b{batch:010d}.a.draft",
        }

    committed, under_way = written_by(1), written_by(2)
    for name in committed | under_way:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("1234")
    report = vacuum(root, dry_run=False, retention_s=0.0)
    assert set(report.paths) == ORPHANS | committed
    assert under_way <= files_in(root)


def test_commits_while_manifests_are_read_take_nothing_that_they_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad rows that wait in the newest state are taken again, and two states later only that manifest names them."""
    chain = Chain(tmp_path, syncs=False)
    file = BadFile("s", bad_rows_file("s", 0, "a"), 0, 1, 4, 0)
    (tmp_path / file.path).parent.mkdir(parents=True)
    (tmp_path / file.path).write_text("1234")

    def commit(batch: int, waiting: tuple[BadFile, ...], retried: tuple[BadFile, ...] = ()) -> None:
        draft = Draft(State(batch, (), {}, waiting), (), (), arrival=Arrival(retried=retried))
        draft.prepare(chain, no_step).commit(chain, lambda: NOW, no_step).clean_up(chain, no_step)

    def read_slowly(root: Path) -> list[Manifest]:
        found = list(read_manifests(root))
        commit(1, (), (file,))
        commit(2, ())
        commit(3, ())
        return found

    commit(0, (file,))
    monkeypatch.setattr(vacuum_module, "read_manifests", read_slowly)
    assert vacuum(tmp_path, dry_run=False, retention_s=0.0).paths == ()
    assert (tmp_path / file.path).exists()


def test_commits_that_remove_the_state_that_is_about_to_be_read_are_no_trouble(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its manifest is read; then two commits remove it."""
    chain = Chain(root, syncs=False)
    monkeypatch.setattr("dovetail.store.chain.check_bucket", lambda *_: None)
    chain.open()
    left = [2, 3, 4]

    def read_late(root: Path, manifest: Manifest) -> State:
        while left:
            draft = Draft(State(left.pop(0), (), {}), (), ())
            draft.prepare(chain, no_step).commit(chain, lambda: NOW, no_step).clean_up(chain, no_step)
        return read_state(root, manifest)

    monkeypatch.setattr(vacuum_module, "read_state", read_late)
    assert set(vacuum(root, dry_run=False, clock=lambda: NOW).paths) == ORPHANS | {NAMED_BUCKET}


def test_a_state_that_is_damaged_is_an_error(root: Path) -> None:
    for path in (root / "state").glob("b0000000001-*.json"):
        path.write_text("")
    with pytest.raises(DamagedFile):
        vacuum(root, dry_run=False)
