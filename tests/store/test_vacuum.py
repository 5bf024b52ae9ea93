from __future__ import annotations

import os
from pathlib import Path

import pytest

from dovetail.store.bucket_file import BucketMeta
from dovetail.store.chain import Chain
from dovetail.store.commit import Draft, no_step
from dovetail.store.manifest import ResultPart
from dovetail.store.state_record import State
from dovetail.store.vacuum import DEFAULT_RETENTION_S, vacuum

NOW = 1_000_000.0
NAMED_BUCKET, ORPHAN_BUCKET = "buckets/s/named.arrow", "buckets/s/orphan.arrow"
OLD_RESULT, ORPHAN_RESULT = "results/q/old.parquet", "results/q/orphan.parquet"
ORPHAN_STATE, DRAFT = "state/b0000000001-f00.json", "manifests/b0000000002.f00.draft"


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
