from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dovetail.core.errors import DamagedFile, ManifestVersionTaken, QueryError
from dovetail.engine.control import changelog
from dovetail.engine.control.changelog import Action, Change, Changelog


def create(name: str, sql: str = "SELECT 1", request: str = "") -> Change:
    return Change(0, Action.CREATE, "", name, sql, request=request)


def drop(query: str, name: str, request: str = "") -> Change:
    return Change(0, Action.DROP, query, name, request=request)


def test_entries_are_numbered_and_queries_get_ids_of_their_own(tmp_path: Path) -> None:
    log = Changelog(tmp_path)
    created = log.append(create("q"))
    dropped = log.append(drop(created.query, "q"))
    again = log.append(create("q", "SELECT 2"))
    assert created == Change(1, Action.CREATE, "q#1", "q", "SELECT 1")
    assert dropped == Change(2, Action.DROP, "q#1", "q")
    assert again.query == "q#3"
    assert log.after(0) == (created, dropped, again)
    assert log.after(2) == (again,)
    assert log.after(3) == ()


def test_what_was_appended_is_there_after_a_restart_and_numbers_go_on(tmp_path: Path) -> None:
    first = Changelog(tmp_path)
    kept = [first.append(create(f"q{number}", "SELECT 'ä\n'")) for number in range(12)]
    second = Changelog(tmp_path)
    assert second.after(0) == tuple(kept)
    assert second.append(drop("q0#1", "q0")).sequence == 13
    assert Changelog(tmp_path).after(12) == second.after(12)


def test_an_entry_that_was_being_written_does_not_count(tmp_path: Path) -> None:
    log = Changelog(tmp_path)
    log.append(create("q"))
    (tmp_path / "changelog" / "0000000002.draft").write_text('{"seq')
    again = Changelog(tmp_path)
    assert len(again.after(0)) == 1
    assert again.append(create("r")).sequence == 2


def test_threads_that_append_at_once_get_different_numbers(tmp_path: Path) -> None:
    log = Changelog(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        changes = list(pool.map(lambda number: log.append(create(f"q{number}")), range(40)))
    assert sorted(change.sequence for change in changes) == list(range(1, 41))
    assert [change.sequence for change in Changelog(tmp_path).after(0)] == list(range(1, 41))


def test_a_repeated_request_finds_its_entry_also_after_a_restart(tmp_path: Path) -> None:
    log = Changelog(tmp_path)
    assert log.requested(create("q", request="r1")) is None
    made = log.append(create("q", request="r1"))
    assert log.requested(create("q", request="r1")) == made
    assert Changelog(tmp_path).requested(create("q", request="r1")) == made
    assert log.requested(create("q")) is None


@pytest.mark.parametrize("other", [create("q", "SELECT 2", "r1"), create("p", request="r1"), drop("q#1", "q", "r1")])
def test_a_request_id_stands_for_one_change(tmp_path: Path, other: Change) -> None:
    log = Changelog(tmp_path)
    log.append(create("q", request="r1"))
    with pytest.raises(QueryError, match="used before for another change"):
        log.requested(other)


def test_old_entries_are_forgotten_and_numbers_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changelog, "REQUESTS_REMEMBERED", 2)
    log = Changelog(tmp_path)
    for number in range(1, 7):
        log.append(create(f"q{number}", request=f"r{number}"))
    log.forget(4)
    assert [change.sequence for change in log.after(0)] == [1, 2, 3, 4, 5, 6]
    log.forget(4)
    assert [change.sequence for change in log.after(0)] == [3, 4, 5, 6]
    assert log.requested(create("q1", request="r1")) is None
    again = Changelog(tmp_path, applied=4)
    assert [change.sequence for change in again.after(0)] == [3, 4, 5, 6]
    again.forget(6)
    assert again.append(create("q7")).sequence == 7


def test_entries_of_the_newest_state_stay_until_the_one_before_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changelog, "REQUESTS_REMEMBERED", 2)
    log = Changelog(tmp_path)
    for number in range(1, 7):
        log.append(create(f"q{number}"))
    log.forget(1)
    log.forget(6)
    assert [change.sequence for change in Changelog(tmp_path, applied=1).after(1)] == [2, 3, 4, 5, 6]
    log.forget(6)
    assert [change.sequence for change in Changelog(tmp_path, applied=6).after(1)] == [5, 6]


@pytest.mark.parametrize("sequence", [2, 3, 4])
def test_an_entry_that_no_batch_applied_is_missed_by_name(tmp_path: Path, sequence: int) -> None:
    log = Changelog(tmp_path)
    for number in range(1, 5):
        log.append(create(f"q{number}"))
    (tmp_path / "changelog" / f"{sequence:010d}.json").unlink()
    with pytest.raises(DamagedFile, match=rf"changelog entry {sequence:010d}\.json is missing: lost is one accepted"):
        Changelog(tmp_path, applied=1)
    assert [change.sequence for change in Changelog(tmp_path, applied=4).after(sequence)] == list(
        range(sequence + 1, 5)
    )
    assert Changelog(tmp_path, applied=4).append(create("q5")).sequence == 5


@pytest.mark.parametrize("text", ["", "{", "{}", '{"sequence":1,"action":"create"}\n00000000\n'])
def test_a_damaged_entry_is_named_with_what_is_lost_and_what_to_do(tmp_path: Path, text: str) -> None:
    Changelog(tmp_path).append(create("q"))
    (tmp_path / "changelog" / "0000000001.json").write_text(text)
    with pytest.raises(DamagedFile, match=r"changelog entry 0000000001\.json .*: lost is one accepted") as caught:
        Changelog(tmp_path)
    assert caught.value.hint


def test_a_second_session_that_got_past_the_lock_overwrites_no_change(tmp_path: Path) -> None:
    first, second = Changelog(tmp_path), Changelog(tmp_path)
    made = first.append(create("mine"))
    with pytest.raises(ManifestVersionTaken, match="change 1"):
        second.append(create("other"))
    assert Changelog(tmp_path).after(0) == (made,)
    assert not list((tmp_path / "changelog").glob("*.draft"))
