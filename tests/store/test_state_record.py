from __future__ import annotations

import json
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from dovetail.core.errors import DamagedFile
from dovetail.store import state_record
from dovetail.store.bucket_file import BucketMeta
from dovetail.store.manifest import Manifest
from dovetail.store.state_record import State, StateWriter, read_state

BUCKET = BucketMeta("s", "buckets/s/x.arrow", 0, 0, 0, 0, 1, 2, 3, None, 5, ("k",), ("v > 1",), True, (("[k]", 1),))


def written(writer: StateWriter, root: Path, state: State) -> State:
    """As it is read back."""
    path, checksum = writer.write(state)
    return read_state(root, Manifest(state.batch, path, checksum, (), 0.0))


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    state = State(7, (BUCKET,), {"epoch": 7, "text": "ä"})
    assert written(StateWriter(tmp_path, "f00"), tmp_path, state) == state


def test_states_are_whole_whatever_was_written_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Buckets come, go and change what they hold; layouts that nobody has any more are forgotten now and then."""
    monkeypatch.setattr(state_record, "FORGOTTEN_LAYOUTS", 3)
    writer, buckets, sizes = StateWriter(tmp_path, "f00"), list[BucketMeta](), []
    for batch in range(40):
        selections = tuple(f"v > {n}" for n in range(batch // 3, batch // 3 + 4))
        buckets = [*buckets[-6:], replace(BUCKET, path=f"buckets/s/{batch}.arrow", selections=selections)]
        if batch % 5 == 4:
            buckets[2] = buckets[2].without({buckets[2].selections[0]}, ())
        state = State(batch, tuple(buckets), {"epoch": batch})
        assert written(writer, tmp_path, state) == state
        sizes.append((tmp_path / writer.write(state)[0]).stat().st_size)
    assert max(sizes[10:]) < 1.5 * min(sizes[10:])


def test_selections_are_written_once_for_all_buckets_that_have_the_same(tmp_path: Path) -> None:
    writer, selections = StateWriter(tmp_path, "f00"), tuple(f"v > {n}" for n in range(500))
    one = replace(BUCKET, selections=selections)
    sizes = []
    for count in (1, 101):
        buckets = tuple(replace(one, path=f"buckets/s/{n}.arrow") for n in range(count))
        sizes.append((tmp_path / writer.write(State(count, buckets, {}))[0]).stat().st_size)
    assert sizes[1] - sizes[0] < 100 * 400


def test_a_state_of_layout_10_is_read(tmp_path: Path) -> None:
    """There each bucket lists its selections itself."""
    state = State(3, (BUCKET, replace(BUCKET, selections=())), {"epoch": 1})
    buckets = [bucket.to_json() | {"selections": [0] * len(bucket.selections)} for bucket in state.buckets]
    record = {"batch": 3, "selections": ["v > 1"], "buckets": buckets, "engine": state.engine, "bad_files": []}
    text = json.dumps(record)
    (tmp_path / "old.json").write_text(text)
    assert read_state(tmp_path, Manifest(3, "old.json", zlib.crc32(text.encode()), (), 0.0)) == state


def test_two_writers_do_not_write_the_same_state_file(tmp_path: Path) -> None:
    paths = {StateWriter(tmp_path, token).write(State(7, (), {}))[0] for token in ("f00", "ba5")}
    assert len(paths) == 2


@pytest.mark.parametrize("how", ["flip", "empty", "delete"])
def test_a_damaged_state_is_refused_by_name_with_what_is_lost(tmp_path: Path, how: str) -> None:
    path, checksum = StateWriter(tmp_path, "f00").write(State(7, (BUCKET,), {"epoch": 7}))
    file = tmp_path / path
    if how == "delete":
        file.unlink()
    else:
        file.write_text("" if how == "empty" else file.read_text().replace('"epoch":7', '"epoch":6'))
    with pytest.raises(DamagedFile, match=r"state record b0000000007-f00\.json .*: lost is all that") as caught:
        read_state(tmp_path, Manifest(7, path, checksum, (), 0.0))
    assert caught.value.hint
