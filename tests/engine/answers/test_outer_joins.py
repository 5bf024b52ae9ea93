"""Outer, semi and anti joins in small scenes: when rows are answered, and what goes with them."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dovetail.core.errors import QueryError
from dovetail.engine.control.registry import QueryState
from dovetail.testing.local_session import LocalSession

SCHEMA = pa.schema([("k", pa.int32()), ("x", pa.int32()), ("ts", pa.timestamp("us", tz="UTC"))])
START = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
NEAR = "b.ts BETWEEN a.ts - INTERVAL 2 SECONDS AND a.ts + INTERVAL 5 SECONDS"
LEFT = f"SELECT a.x, b.x AS y FROM a LEFT JOIN b ON a.k = b.k AND {NEAR}"
ANTI = f"SELECT a.x FROM a LEFT ANTI JOIN b ON a.k = b.k AND {NEAR}"
SEMI = f"SELECT a.x FROM a LEFT SEMI JOIN b ON a.k = b.k AND {NEAR}"

Rows = list[tuple[int | None, int, float | None]]


def table(rows: Rows) -> pa.Table:
    """Rows of (key, value, seconds)."""
    times = [None if at is None else START + datetime.timedelta(seconds=at) for _, _, at in rows]
    return pa.Table.from_arrays([[k for k, _, _ in rows], [x for _, x, _ in rows], times], schema=SCHEMA)


class Scene:
    def __init__(self, folder: Path, lateness: str = "0 seconds", **options: Any) -> None:
        self.session = LocalSession(folder, **options)
        for name in "ab":
            self.session.create_stream(name, SCHEMA, event_time="ts", lateness=lateness)
        self.seen: dict[str, int] = {}

    def push(self, a: Rows = (), b: Rows = ()) -> None:
        self.session.push({"a": table(a), "b": table(b)})

    def new(self, name: str = "q") -> list[tuple[Any, ...]]:
        """What was answered since the last time."""
        rows = [tuple(row.values()) for row in self.session.results(name).to_pylist()]
        fresh = rows[self.seen.get(name, 0) :]
        self.seen[name] = len(rows)
        return sorted(fresh, key=str)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_row_without_a_partner_comes_once_none_can_come_any_more(scene: Scene) -> None:
    scene.session.create_query(LEFT, "q")
    scene.push(a=[(1, 10, 0), (2, 20, 1)], b=[(9, 0, 5)])
    assert scene.new() == []
    scene.push(b=[(1, 11, 5)])
    assert scene.new() == [(10, 11)]
    scene.push(b=[(8, 0, 6.000001)])
    assert scene.new() == [(20, None)]
    scene.push(b=[(8, 0, 60)])
    assert scene.new() == []


def test_one_batch_decides_by_its_own_rows(scene: Scene) -> None:
    scene.session.create_query(ANTI, "q")
    scene.push(a=[(1, 10, 0), (2, 20, 0), (3, 30, 50)], b=[(2, 0, 3), (9, 0, 60)])
    assert scene.new() == [(10,), (30,)]


def test_lateness_keeps_rows_undecided(tmp_path: Path) -> None:
    scene = Scene(tmp_path, lateness="10 seconds")
    scene.session.create_query(LEFT, "q")
    scene.push(a=[(1, 10, 0), (2, 20, 0)], b=[(9, 0, 14)])
    scene.push(b=[(1, 11, 5)])
    assert scene.new() == [(10, 11)]
    scene.push(b=[(9, 0, 16)])
    assert scene.new() == [(20, None)]


def test_rows_that_can_have_no_partner_come_at_once_and_once(scene: Scene) -> None:
    scene.session.create_query(LEFT, "q")
    scene.push(a=[(None, 10, 0), (2, 20, None), (None, 30, None)])
    assert scene.new() == [(10, None), (20, None), (30, None)]
    scene.push(b=[(9, 0, 60)])
    scene.push(b=[(9, 0, 120)])
    assert scene.new() == []


def test_on_says_who_are_partners_and_where_filters(scene: Scene) -> None:
    scene.session.create_query(f"SELECT a.x, b.x AS y FROM a LEFT JOIN b ON a.k = b.k AND {NEAR} AND a.x > 15", "on")
    scene.session.create_query(f"{LEFT} WHERE a.x > 15", "where_left")
    scene.session.create_query(f"{LEFT} WHERE b.x > 15", "where_right")
    scene.session.create_query(f"{LEFT} WHERE b.k IS NULL", "lone")
    scene.push(a=[(1, 10, 0), (2, 20, 0), (3, 30, 0)], b=[(1, 11, 0), (2, 21, 0), (9, 0, 60)])
    assert scene.new("on") == [(10, None), (20, 21), (30, None)]
    assert scene.new("where_left") == [(20, 21), (30, None)]
    assert scene.new("where_right") == [(20, 21)]
    assert scene.new("lone") == [(30, None)]


def test_what_a_derived_table_computes_is_null_where_its_row_is_missing(scene: Scene) -> None:
    scene.session.create_query(
        f"""SELECT a.x, b.one, b.y, b.w FROM a LEFT JOIN
            (SELECT k, ts, 1 AS one, coalesce(x, 7) AS y, window(ts, '4 seconds') AS w FROM b) b
            ON a.k = b.k AND {NEAR} WHERE b.one IS NULL OR b.y = 7""",
        "q",
    )
    scene.push(a=[(1, 10, 0)], b=[(9, 0, 60)])
    assert scene.new() == [(10, None, None, None)]


def test_a_semi_join_answers_each_row_once_when_its_first_partner_comes(scene: Scene) -> None:
    scene.session.create_query(SEMI, "q")
    scene.push(a=[(1, 10, 0), (2, 20, 0)], b=[(1, 0, 0), (1, 1, 1)])
    assert scene.new() == [(10,)]
    scene.push(b=[(1, 2, 1), (2, 3, 2), (2, 4, 2)])
    assert scene.new() == [(20,)]
    scene.push(a=[(2, 21, 2)], b=[(2, 5, 3)])
    assert scene.new() == [(21,)]


def test_a_semi_join_needs_no_time(scene: Scene) -> None:
    scene.session.create_query("SELECT x FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)", "q")
    scene.push(a=[(1, 10, 0)], b=[(9, 0, 90)])
    scene.push(a=[(1, 11, 100)], b=[(1, 0, 95)])
    assert scene.new() == [(10,), (11,)]
    scene.push(b=[(1, 0, 99)])
    assert scene.new() == []


def test_state_goes_with_what_is_decided(scene: Scene) -> None:
    for name, sql in (("left", LEFT), ("anti", ANTI), ("semi", SEMI)):
        scene.session.create_query(sql, name)
    for step in range(30):
        scene.push(a=[(step, step, 10 * step)], b=[(step + 1, 0, 10 * step)])
    stores = (scene.session.progress or {})["stores"]
    assert [entry["numRows"] <= 3 and entry["isBounded"] for entry in stores] == [True, True]
    assert scene.session.results("left").num_rows == scene.session.results("anti").num_rows == 29
    assert {name for entry in stores for name in entry["queries"]} == {"left", "anti", "semi"}


def test_a_query_that_comes_later_answers_what_is_decided_from_then_on(scene: Scene) -> None:
    scene.session.create_query(LEFT, "first")
    scene.push(a=[(1, 10, 0), (2, 20, 20)], b=[(9, 0, 15)])
    assert scene.new("first") == [(10, None)]
    later = scene.session.create_query(ANTI, "later")
    scene.push(b=[(9, 0, 60)])
    assert later.status.complete_from == 0
    assert scene.new("later") == [(20,)]


def test_a_silent_stream_lets_rows_be_decided(tmp_path: Path) -> None:
    now = [2e9]
    scene = Scene(tmp_path, clock=lambda: now[0], idle_timeout="10 seconds")
    for name, sql in (("q", LEFT), ("inner", LEFT.replace("LEFT ", ""))):
        scene.session.create_query(sql, name)
    scene.push(a=[(1, 10, 0), (2, 20, 0)], b=[(2, 21, 0)])
    assert scene.new() == [(20, 21)]
    for step in range(1, 5):
        now[0] += 6.0
        scene.push(a=[(3, 30 + step, 20 * step)])
    # The driver lets the stream go along after the third batch: rows are decided with the next, and are still there.
    assert scene.new() == [(10, None), (31, None), (32, None)]


def test_a_failure_on_a_padded_row_stops_that_query_alone(scene: Scene) -> None:
    bad = scene.session.create_query(f"{LEFT} WHERE 1 / (coalesce(b.x, 0)) > 0 OR a.x > 0", "bad")
    scene.session.create_query(LEFT, "good")
    scene.push(a=[(1, 10, 0)], b=[(1, 5, 0)])
    scene.push(a=[(2, 20, 10)], b=[(9, 0, 60)])
    assert (bad.status.state, bad.status.failed_batch) == (QueryState.QUARANTINED, 1)
    assert scene.new("bad") == [(10, 5)]
    assert scene.new("good") == [(10, 5), (20, None)]


def test_rows_without_partners_count_as_results(scene: Scene) -> None:
    few = scene.session.create_query(ANTI, "few", max_results_per_batch=1)
    scene.session.create_query(ANTI, "many")
    scene.push(a=[(1, 10, 0), (2, 20, 0), (3, 30, 0)], b=[(9, 0, 60)])
    assert few.status.state is QueryState.QUARANTINED
    assert "found more than 1 results" in str(few.status.error)
    assert scene.new("many") == [(10,), (20,), (30,)]


def test_rows_wait_through_a_restart(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.session.create_query(LEFT, "q")
    scene.push(a=[(1, 10, 0), (2, 20, 3)], b=[(9, 0, 6)])
    assert scene.new() == [(10, None)]
    scene.session.close()
    again = Scene(tmp_path, partitions=3)
    again.push(b=[(9, 0, 60)])
    assert again.new() == [(10, None), (20, None)]


def test_a_backfill_is_refused(scene: Scene) -> None:
    with pytest.raises(QueryError, match="left outer join and cannot be backfilled"):
        scene.session.create_query(LEFT, "q", backfill=True)


def test_explain_shows_how_rows_are_decided(scene: Scene) -> None:
    for name, sql in (("left", LEFT), ("anti", ANTI), ("semi", SEMI)):
        scene.session.create_query(sql, name)
    scene.push(a=[(1, 10, 0)], b=[(1, 5, 0)])
    text = scene.session.execute("EXPLAIN anti").text
    assert "each row of a that can get no more partners" in text
    assert "each that finds none is an answer\n" in text
    assert "with NULL for all columns of b" in scene.session.execute("EXPLAIN left").text
    assert "shared with left" in text
    assert "the new row is its first partner" in scene.session.execute("EXPLAIN semi").text
    assert scene.session.engine.plans.planned().plan.text_tree({"left#1": "left"})


def test_a_row_is_not_answered_again_after_a_restart_with_more_lateness(tmp_path: Path) -> None:
    first = Scene(tmp_path)
    first.session.create_query(LEFT, "q")
    first.push(a=[(1, 10, 72), (2, 20, 100)], b=[(9, 0, 100)])
    first.push(b=[(9, 0, 101)])
    assert first.new() == [(10, None)]
    first.session.close()
    again = Scene(tmp_path, lateness="40 seconds")
    again.seen["q"] = 1
    # By the new lateness b is at 61 s, before the row of 72 s; it was at 101 s, though.
    for at in (102, 110, 130, 150):
        again.push(a=[(7, 0, at)], b=[(9, 0, at)])
    answered = [x for x, _ in again.new()]
    assert (answered.count(10), answered.count(20)) == (0, 1)
