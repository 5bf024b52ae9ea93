"""Rows that their stream cannot use: kept aside, counted, bounded, taken again once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dovetail.core.errors import BadRowError, DamagedFile, StreamError
from dovetail.engine.batch import next_bad_rows
from dovetail.query.row_rules import LAST_TIME_US, RowRules, row_rules
from dovetail.testing.local_history import LocalHistory
from dovetail.testing.local_session import LocalSession
from tests.support.bad_rows import AHEAD_US, IMPOSSIBLE_US, NOW_S, SCHEMA, SECOND, START_US, Batch, table_of

JOIN = "SELECT a.v AS av, b.v AS bv FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS"


def open_session(folder: Path, history: LocalHistory | None = None, **rules: str) -> LocalSession:
    session = LocalSession(folder, clock=lambda: NOW_S, history=history)
    for name in "ab":
        session.create_stream(name, SCHEMA, "ts", **rules)
    return session


def push(session: LocalSession, batch: Batch, splits: int = 1) -> None:
    session.push({name: table_of(rows) for name, rows in batch.items()}, splits)


def answers(session: LocalSession, name: str = "q") -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in session.results(name).to_pylist())


def badness(session: LocalSession, stream: int = 0) -> dict[str, Any]:
    assert session.progress is not None
    found: dict[str, Any] = session.progress["streams"][stream]["badRows"]
    return found


@pytest.mark.parametrize("time_us", [*IMPOSSIBLE_US, AHEAD_US])
def test_a_bad_row_moves_no_watermark_and_the_rows_after_it_are_not_late(tmp_path: Path, time_us: int) -> None:
    session = open_session(tmp_path)
    session.create_query(JOIN, "q")
    push(session, {"a": [(1, 1, START_US), (1, 2, time_us)]})
    push(session, {"a": [(1, 3, START_US + SECOND)], "b": [(1, 4, START_US + SECOND)]})
    assert answers(session) == [(1, 4), (3, 4)]
    (row,) = session.bad_rows("a")
    assert (row.batch, row.position, row.values["v"], row.source) == (0, 1, 2, None)
    assert badness(session)["total"] == badness(session)["kept"] == 1


def test_a_null_event_time_is_not_bad(tmp_path: Path) -> None:
    session = open_session(tmp_path)
    session.create_query("SELECT a.v AS av, b.v AS bv FROM a JOIN b ON a.k = b.k", "q")
    push(session, {"a": [(1, 1, None)], "b": [(1, 2, None)]})
    assert answers(session) == [(1, 2)]
    assert session.bad_rows("a") == []


def test_a_row_at_the_bound_is_good_and_one_past_it_is_bad(tmp_path: Path) -> None:
    session = open_session(tmp_path, max_event_time_ahead="2 hours")
    bound = int(NOW_S * 1e6) + 2 * 3600 * SECOND
    push(session, {"a": [(1, 1, bound), (1, 2, bound + 1)]})
    assert [row.values["v"] for row in session.bad_rows("a")] == [2]


def test_dropped_rows_are_only_counted(tmp_path: Path) -> None:
    session = open_session(tmp_path, on_bad_row="drop")
    push(session, {"a": [(1, 1, AHEAD_US)]})
    assert session.bad_rows("a") == []
    assert (badness(session)["total"], badness(session)["overflowed"]) == (1, 0)


def test_a_stream_that_shall_fail_commits_nothing_and_names_the_row(tmp_path: Path) -> None:
    session = open_session(tmp_path, on_bad_row="fail")
    with pytest.raises(BadRowError, match=r"2027-02-05.*\n.*max_event_time_ahead = 'off'"):
        push(session, {"a": [(1, 1, AHEAD_US)]})
    assert session.engine.head.batch == -1


@pytest.mark.parametrize("splits", [1, 2])
def test_retried_rows_come_once_and_what_is_still_bad_stays(tmp_path: Path, splits: int) -> None:
    session = open_session(tmp_path)
    session.create_query(JOIN, "q")
    push(session, {"a": [(1, 1, AHEAD_US), (1, 2, IMPOSSIBLE_US[0])]})
    assert session.retry_bad_rows("a") == 2
    session.close()
    session = open_session(tmp_path, max_event_time_ahead="off")
    push(session, {"a": [(2, 3, START_US)], "b": [(1, 4, AHEAD_US)]}, splits)
    push(session, {"b": [(1, 5, AHEAD_US)]}, splits)
    assert answers(session) == [(1, 4), (1, 5)]
    (row,) = session.bad_rows("a")
    assert (row.values["v"], row.batch) == (2, 1)
    assert badness(session)["retried"] == 2


def test_a_backfill_judges_old_rows_as_their_batches_did(tmp_path: Path) -> None:
    """Rows that were bad stay out; those that a later batch took again are there, from that batch on."""
    history = LocalHistory()
    session = open_session(tmp_path, history)
    push(session, {"a": [(1, 1, START_US), (1, 2, AHEAD_US)], "b": [(1, 3, START_US)]})
    session.retry_bad_rows("a")
    session.close()
    session = open_session(tmp_path, history, max_event_time_ahead="off")
    push(session, {"b": [(1, 4, AHEAD_US)]})
    push(session, {"a": [(1, 5, AHEAD_US)]})
    session.create_query(JOIN, "q", backfill=True)
    push(session, {"a": [(9, 0, AHEAD_US + 100 * SECOND)], "b": [(8, 0, AHEAD_US + 100 * SECOND)]})
    while session.backfills.step(1):
        pass
    push(session, {})
    assert answers(session) == [(1, 3), (2, 4), (5, 4)]


def test_a_backfill_does_not_take_what_was_too_far_ahead(tmp_path: Path) -> None:
    history = LocalHistory()
    session = open_session(tmp_path, history)
    push(session, {"a": [(1, 1, AHEAD_US)], "b": [(1, 2, AHEAD_US)]})
    session.create_query(JOIN, "q", backfill=True)
    push(session, {"a": [(9, 0, START_US)], "b": [(8, 0, START_US)]})
    while session.backfills.step(1):
        pass
    push(session, {})
    assert answers(session) == []


def test_what_is_more_than_may_be_kept_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(next_bad_rows, "MAX_BAD_ROWS", 3)
    session = open_session(tmp_path)
    for batch in range(2):
        push(session, {"a": [(1, 10 * batch + place, AHEAD_US) for place in range(4)]}, splits=2)
    assert len(session.bad_rows("a")) == 3
    assert (badness(session)["total"], badness(session)["kept"], badness(session)["overflowed"]) == (8, 3, 5)


def test_vacuum_keeps_what_is_aside(tmp_path: Path) -> None:
    session = open_session(tmp_path)
    push(session, {"a": [(1, 1, AHEAD_US)]})
    session.vacuum()
    assert [row.values["v"] for row in session.bad_rows("a")] == [1]


def test_bad_rows_are_shown_by_show_streams_and_explain(tmp_path: Path) -> None:
    session = open_session(tmp_path)
    session.create_query(JOIN, "q")
    push(session, {"a": [(1, 1, AHEAD_US)]})
    shown = session.execute("SHOW STREAMS").rows[0]
    assert (shown["bad_rows"], shown["on_bad_row"], shown["max_event_time_ahead"]) == (1, "quarantine", "1 day")
    assert "1 bad row so far, the last because ts is 2027-02-05" in (session.execute("EXPLAIN q").text or "")


def test_the_bound_of_times_without_a_zone_is_by_the_clock_of_the_session() -> None:
    rules = RowRules(max_ahead_us=0)
    in_tokyo = rules.last_time_us(1_767_225_600.0, "Asia/Tokyo", has_zone=False)
    assert in_tokyo - rules.last_time_us(1_767_225_600.0, "Asia/Tokyo", has_zone=True) == 9 * 3600 * SECOND
    assert RowRules(max_ahead_us=None).last_time_us(0.0, "UTC", has_zone=True) == LAST_TIME_US


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"on_bad_row": "ignore"}, "quarantine, drop, fail"),
        ({"max_event_time_ahead": "soon"}, "or 'off'"),
        ({"max_event_time_ahead": "-1 day"}, "negative"),
    ],
)
def test_rules_that_cannot_be_are_refused_with_those_that_can(given: dict[str, str], said: str) -> None:
    with pytest.raises(StreamError, match=said):
        row_rules("s", **given)


def test_files_of_bad_rows_are_private_and_their_damage_is_told(tmp_path: Path) -> None:
    session = open_session(tmp_path)
    session.create_query(JOIN, "q")
    push(session, {"a": [(1, 1, AHEAD_US)]})
    (path,) = (tmp_path / "bad_rows").rglob("*.parquet")
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(DamagedFile, match="lost are 1 bad rows of stream 'a', of batch 0"):
        session.bad_rows("a")
    path.unlink()
    with pytest.raises(DamagedFile, match="is missing"):
        session.bad_rows("a")
