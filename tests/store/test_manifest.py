from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest

from dovetail.core.errors import DamagedFile
from dovetail.store.manifest import (
    Arrival,
    Link,
    Manifest,
    ResultPart,
    SourceLog,
    check_names,
    digest_of,
    read_manifest,
    read_manifests,
)

RESULT = ResultPart("q#1", "results/q/x.parquet", 7, 100, 12)
LOG = SourceLog({"offsets/0": "v1\n"}, {"offsets/0": 1}, {"0": 4})


def put(root: Path, manifest: Manifest) -> Manifest:
    path = root / f"manifests/b{manifest.batch:010d}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(manifest.text)
    return manifest


def chained(root: Path, batches: tuple[int, ...]) -> list[Manifest]:
    made: list[Manifest] = []
    for batch in batches:
        previous = Link(made[-1].batch, digest_of(made[-1].text)) if made else None
        manifest = Manifest(batch, "state/x.json", 3, (RESULT,), 1.5, Arrival({"a": 1}, {"a": 0}, {"a": "{}"}))
        made.append(
            put(root, replace(manifest, previous=previous, first_batch=batches[0], dead_paths=("d",), source_log=LOG))
        )
    return made


def test_manifests_are_read_as_they_were_written(tmp_path: Path) -> None:
    made = chained(tmp_path, (9, 10, 11))
    assert list(read_manifests(tmp_path)) == made
    assert read_manifest(tmp_path, 10) == made[1]


def test_a_new_checkpoint_has_no_batch(tmp_path: Path) -> None:
    assert list(read_manifests(tmp_path)) == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"batch": 0}', '{"batch": 0, "results": [{}]}', "\n", "\x00"])
def test_a_manifest_that_cannot_be_read_is_refused_by_name(tmp_path: Path, text: str) -> None:
    chained(tmp_path, (0,))
    (tmp_path / "manifests/b0000000000.json").write_text(text)
    with pytest.raises(DamagedFile, match=r"manifest b0000000000\.json .*: lost is which answers"):
        read_manifest(tmp_path, 0)


def test_every_flipped_bit_of_a_manifest_is_found(tmp_path: Path) -> None:
    (manifest,) = chained(tmp_path, (0,))
    path = tmp_path / "manifests/b0000000000.json"
    content = path.read_bytes()
    for place in range(0, len(content), 7):
        for bit in (0, 3, 7):
            path.write_bytes(content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :])
            with contextlib.suppress(DamagedFile):
                assert read_manifest(tmp_path, 0) == manifest


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_missing_manifest_is_named_without_reading_all_and_when_all_are_read(tmp_path: Path, lost: int) -> None:
    made = chained(tmp_path, (0, 1, 2, 3))
    (tmp_path / f"manifests/b{lost:010d}.json").unlink()
    message = rf"manifest b{lost:010d}\.json is missing"
    with pytest.raises(DamagedFile, match=message):
        check_names(tmp_path, [batch for batch in range(4) if batch != lost], made[-1])
    with pytest.raises(DamagedFile, match=message):
        list(read_manifests(tmp_path))


def test_a_manifest_that_another_took_the_place_of_is_named(tmp_path: Path) -> None:
    made = chained(tmp_path, (0, 1, 2))
    put(tmp_path, replace(made[1], committed_at=99.0))
    with pytest.raises(DamagedFile, match=r"manifest b0000000001\.json is not the one that batch 2 follows"):
        list(read_manifests(tmp_path))


@pytest.mark.parametrize("batch", [1, 2])
def test_the_bytes_of_another_batch_s_manifest_are_damage(tmp_path: Path, batch: int) -> None:
    """Those of the first one are held to no chain."""
    made = chained(tmp_path, (0, 1, 2))
    (tmp_path / f"manifests/b{batch:010d}.json").write_text(made[0].text)
    with pytest.raises(DamagedFile, match=rf"manifest b{batch:010d}\.json is that of batch 0"):
        read_manifest(tmp_path, batch)


def test_manifests_are_read_up_to_a_batch_which_must_be_there(tmp_path: Path) -> None:
    made = chained(tmp_path, (0, 1, 2))
    assert list(read_manifests(tmp_path, 1)) == made[:2]
    assert list(read_manifests(tmp_path, -1)) == []
    with pytest.raises(DamagedFile, match=r"manifest b0000000003\.json is missing"):
        list(read_manifests(tmp_path, 3))


def test_a_chain_may_skip_numbers_and_begin_anywhere(tmp_path: Path) -> None:
    made = chained(tmp_path, (3, 7, 8))
    check_names(tmp_path, [3, 7, 8], made[-1])
    assert [manifest.batch for manifest in read_manifests(tmp_path)] == [3, 7, 8]


def test_manifests_that_name_none_before_them_are_not_held_to_a_chain(tmp_path: Path) -> None:
    for batch in (0, 1):
        path = tmp_path / f"manifests/b{batch:010d}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            f'{{"batch":{batch},"state_path":"s","state_checksum":1,"committed_at":2.0,"arrival":{{}},'
            '"results":[{"query":"q","path":"results/q/x","rows":1,"size_bytes":2}]}'
        )
    found = list(read_manifests(tmp_path))
    assert [each.batch for each in found] == [0, 1]
    assert {(each.previous, each.results[0].checksum) for each in found} == {(None, None)}
