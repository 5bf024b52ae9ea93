"""The file that says whose a query is: it outlives crashes, and is refused when it is damaged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.faults.power_loss import SyncRecorder, Unsynced
from dovetail.core.errors import ServiceError
from dovetail.service.access.owners import Owners
from tests.support.faults.full_disk import files_have_at_most

OLD = '{"query": "a", "owner": "alice"}\n{"query": "b", "owner": "bob"}\n{"query": "a", "owner": null}\n'

LATER = {"alice": "carol", "bob": "dave"}
"""Who is noted for a query after whom."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "service" / "owners.jsonl"


def _claim(owners: Owners, **owner_by_name: str) -> None:
    for name, owner in owner_by_name.items():
        with owners.claiming(name, owner):
            pass


def _known(path: Path) -> dict[str, str | None]:
    owners = Owners(path)
    return {name: owners.of(name) for name in ("a", "b", "c")}


def _written(path: Path) -> bytes:
    owners = Owners(path)
    owners.forget_others([])
    _claim(owners, a="alice", b="bob")
    _claim(owners, c="eve")
    return path.read_bytes()


def test_owners_are_there_after_a_restart(path: Path) -> None:
    _written(path)
    assert _known(path) == {"a": "alice", "b": "bob", "c": "eve"}
    Owners(path).forget_others(["b", "c"])
    _claim(Owners(path), c="carol")
    assert _known(path) == {"a": None, "b": "bob", "c": "carol"}


def test_a_last_line_that_a_crash_cut_off_is_forgotten_and_the_file_goes_on(path: Path) -> None:
    whole = _written(path)
    last = whole.rindex(b"{")
    for end in range(last + 1, len(whole)):
        path.write_bytes(whole[:end])
        has_all = end == len(whole) - 1
        assert _known(path) == {"a": "alice", "b": "bob", "c": "eve" if has_all else None}
    _claim(Owners(path), c="dave")
    assert _known(path) == {"a": "alice", "b": "bob", "c": "dave"}
    path.write_bytes(whole[: last + 9])
    _claim(Owners(path), c="carol")
    assert _known(path) == {"a": "alice", "b": "bob", "c": "carol"}


def test_no_byte_can_be_another(path: Path) -> None:
    whole = _written(path)
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(ServiceError) as caught:
            Owners(path)
        assert caught.value.where == str(path)
        assert "restore it; or remove it" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "is empty"),
        (OLD.encode().replace(b'"b", "ow', b'"b", "ow#'), "has a broken line 2"),
        (OLD.encode().replace(b'"owner": "bob"}', b'"owner": "bob"'), "has a broken line 2"),
        (b"[]\n", "has a broken line 1"),
        (b"5\n", "has a broken line 1"),
        (b'{"query": 5, "owner": "alice"}\n', "has a broken line 1"),
        (b'{"query": "a", "owner": "\xff"}\n', "is no UTF-8"),
    ],
)
def test_a_damaged_file_is_refused_with_what_to_do(path: Path, content: bytes, what: str) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(ServiceError, match=what) as caught:
        Owners(path)
    assert str(path) in str(caught.value)


def test_a_line_that_is_gone_from_the_middle_is_noticed(path: Path) -> None:
    lines = _written(path).splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], *lines[3:]]))
    with pytest.raises(ServiceError, match="other letters in line 3"):
        Owners(path)


def test_a_folder_in_its_place_is_refused(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(ServiceError, match="cannot be read"):
        Owners(path)


def test_a_file_from_before_there_were_checksums_is_read_and_gets_them(path: Path) -> None:
    path.parent.mkdir()
    path.write_text(OLD + '{"query": "c", "ow')
    assert _known(path) == {"a": None, "b": "bob", "c": None}
    Owners(path).forget_others(["b"])
    assert b"seal" in path.read_bytes()
    assert _known(path) == {"a": None, "b": "bob", "c": None}


@pytest.mark.parametrize("can_be_cut", [True, False])
@pytest.mark.parametrize("room", [0, 1, 20, 40])
def test_a_line_that_a_full_disk_cuts_off_never_was_and_the_file_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch, room: int, can_be_cut: bool
) -> None:
    """Also where the part of it that was written cannot be taken back."""
    _written(path)
    owners = Owners(path)
    owners.forget_others("abc")
    with monkeypatch.context() as patched:
        if not can_be_cut:
            patched.setattr(os, "ftruncate", _fail)
        size = path.stat().st_size
        with files_have_at_most(size + room), pytest.raises(OSError, match="too large"):
            _claim(owners, c="dave")
    assert (owners.of("c"), owners.count("dave", "abc"), _known(path)["c"]) == ("eve", 0, "eve")
    _claim(owners, b="dave", a="carol")
    _claim(owners, c="carol")
    assert _known(path) == {"a": "carol", "b": "dave", "c": "carol"}


def test_a_line_that_may_not_be_on_the_disk_never_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was written whole, and then the disk failed: whoever owned the query still does."""
    _written(path)
    owners = Owners(path)
    owners.forget_others("abc")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", _fail)
        with pytest.raises(OSError, match="broken"):
            _claim(owners, c="dave")
    assert (owners.of("c"), _known(path)["c"]) == ("eve", "eve")


def test_a_creation_that_fails_fails_with_its_own_error_and_its_line_goes_when_there_is_room(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _written(path)
    owners = Owners(path)
    owners.forget_others("abc")
    size = path.stat().st_size
    with files_have_at_most(size + 60), pytest.raises(ValueError, match="its own"), owners.claiming("c", "dave"):
        raise ValueError("its own")
    assert owners.of("c") == "eve"
    assert "still says that query c is of dave" in caplog.text
    _claim(owners, c="eve")
    assert _known(path)["c"] == "eve"


@pytest.mark.parametrize("unsynced", list(Unsynced))
def test_a_power_loss_leaves_every_owner_of_an_accepted_query(path: Path, tmp_path: Path, unsynced: Unsynced) -> None:
    path.parent.mkdir()
    with SyncRecorder(path.parent) as recorder:
        owners = Owners(path)
        for name, owner in (("a", "alice"), ("b", "bob"), ("c", "eve"), ("b", "dave")):
            _claim(owners, **{name: owner})
            recorder.acknowledge(f"{name} is of {owner}")
        owners.forget_others("abc")
        _claim(owners, a="carol")
        recorder.acknowledge("a is of carol")
    for moment in recorder.moments:
        restored = tmp_path / str(moment.number) / path.name
        moment.restore(restored.parent, unsynced)
        told = dict(line.split(" is of ") for line in moment.acknowledged)
        found = _known(restored)
        # A line may be there before its query is accepted.
        assert all(found[name] in (owner, LATER.get(owner)) for name, owner in told.items())


@pytest.mark.parametrize("syncs", [True, False])
def test_lines_are_synced_only_where_a_power_loss_counts(
    path: Path, monkeypatch: pytest.MonkeyPatch, syncs: bool
) -> None:
    owners = Owners(path, syncs=syncs)
    owners.forget_others([])
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    _claim(owners, a="alice", b="bob")
    assert len(synced) == (2 if syncs else 0)


def _fail(*_: object) -> None:
    raise OSError("broken")
