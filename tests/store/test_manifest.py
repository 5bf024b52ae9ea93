from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.core.errors import ManifestVersionTaken, StoreError
from dovetail.store.bucket_file import BucketMeta
from dovetail.store.manifest import Manifest, ResultFile, State, put_manifest, read_latest, read_manifests, write_state

BUCKET = BucketMeta("s", "buckets/s/x.arrow", 0, 0, 0, 0, 1, 2, 3, None, 5, ("k",), ("v > 1",), True, (("[k]", 1),))
RESULT = ResultFile("q#1", "results/q/x.parquet", 7, 100)


def committed(root: Path, batch: int, results: tuple[ResultFile, ...] = ()) -> tuple[Manifest, State]:
    state = State(batch, (BUCKET,), {"epoch": batch, "text": "ä"})
    manifest = Manifest(batch, *write_state(root, state), results, committed_at=1.5)
    put_manifest(root, manifest)
    return manifest, state


def files_in(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def test_a_new_checkpoint_has_no_batch(tmp_path: Path) -> None:
    assert read_latest(tmp_path) is None
    assert list(read_manifests(tmp_path)) == []


def test_the_newest_batch_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = [committed(tmp_path, batch, (RESULT,) * batch) for batch in (9, 10, 11)]
    assert read_latest(tmp_path) == written[-1]
    assert list(read_manifests(tmp_path)) == [manifest for manifest, _ in written]


def test_a_batch_is_committed_once(tmp_path: Path) -> None:
    first, _ = committed(tmp_path, 3)
    before = files_in(tmp_path)
    with pytest.raises(ManifestVersionTaken, match="batch 3") as caught:
        put_manifest(tmp_path, Manifest(3, "state/other.json", 0, (RESULT,), 9.0))
    assert caught.value.hint
    assert list(read_manifests(tmp_path)) == [first]
    assert files_in(tmp_path) == before


def test_no_draft_stays_behind(tmp_path: Path) -> None:
    committed(tmp_path, 0)
    assert files_in(tmp_path) == {"manifests/b0000000000.json", "state/b0000000000.json"}


def test_a_state_record_that_no_manifest_names_does_not_count(tmp_path: Path) -> None:
    written = committed(tmp_path, 0)
    write_state(tmp_path, State(1, (), {}))
    assert read_latest(tmp_path) == written


def test_a_state_record_with_other_bytes_is_refused_by_name(tmp_path: Path) -> None:
    manifest, _ = committed(tmp_path, 0)
    path = tmp_path / manifest.state_path
    path.write_text(path.read_text().replace('"epoch":0', '"epoch":1'))
    with pytest.raises(StoreError, match=r"state/b0000000000\.json has other bytes"):
        read_latest(tmp_path)


def test_a_missing_state_record_is_refused_by_name(tmp_path: Path) -> None:
    manifest, _ = committed(tmp_path, 0)
    (tmp_path / manifest.state_path).unlink()
    with pytest.raises(StoreError, match=r"b0000000000\.json is missing"):
        read_latest(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"batch": 0}', '{"batch": 0, "results": [{}]}'])
def test_a_manifest_that_cannot_be_read_is_refused_by_name(tmp_path: Path, text: str) -> None:
    committed(tmp_path, 0)
    (tmp_path / "manifests/b0000000000.json").write_text(text)
    with pytest.raises(StoreError, match=r"b0000000000\.json"):
        read_latest(tmp_path)
