from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dovetail.engine.changelog import Change, Changelog


def test_entries_are_numbered_and_queries_get_ids_of_their_own(tmp_path: Path) -> None:
    log = Changelog(tmp_path)
    created = log.append_create("q", "SELECT 1")
    dropped = log.append_drop(created.query, "q")
    again = log.append_create("q", "SELECT 2")
    assert created == Change(1, "create", "q#1", "q", "SELECT 1")
    assert dropped == Change(2, "drop", "q#1", "q")
    assert again.query == "q#3"
    assert log.after(0) == (created, dropped, again)
    assert log.after(2) == (again,)
    assert log.after(3) == ()


def test_what_was_appended_is_there_after_a_restart_and_numbers_go_on(tmp_path: Path) -> None:
    first = Changelog(tmp_path)
    kept = [first.append_create(f"q{number}", "SELECT 'ä\n'") for number in range(12)]
    second = Changelog(tmp_path)
    assert second.after(0) == tuple(kept)
    assert second.append_drop("q0#1", "q0").sequence == 13
    assert Changelog(tmp_path).after(12) == second.after(12)


def test_an_entry_that_was_being_written_does_not_count(tmp_path: Path) -> None:
    log = Changelog(tmp_path)
    log.append_create("q", "SELECT 1")
    (tmp_path / "changelog" / "0000000002.draft").write_text('{"seq')
    again = Changelog(tmp_path)
    assert len(again.after(0)) == 1
    assert again.append_create("r", "SELECT 2").sequence == 2


def test_threads_that_append_at_once_get_different_numbers(tmp_path: Path) -> None:
    log = Changelog(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        changes = list(pool.map(lambda number: log.append_create(f"q{number}", "SELECT 1"), range(40)))
    assert sorted(change.sequence for change in changes) == list(range(1, 41))
    assert [change.sequence for change in Changelog(tmp_path).after(0)] == list(range(1, 41))
