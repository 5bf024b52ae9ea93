"""When windows close, what updates, what grows, and the columns of answers."""

from __future__ import annotations

import pytest

from dovetail.frontend.compile_sql import compile_sql
from dovetail.query.answer_columns import answer_columns
from dovetail.query.growing_groups import growing_groups
from dovetail.query.stream import Stream
from dovetail.query.types import INT, TIMESTAMP
from tests.support.oracles.closing import closed_until

STREAMS = {name: Stream(name, (("k", INT), ("x", INT), ("ts", TIMESTAMP)), "ts") for name in ("a", "b", "c")}
BOUND = "FROM a JOIN b ON a.k = b.k AND b.ts <= a.ts + INTERVAL 5 SECONDS"


def query_of(text: str):
    return compile_sql(text, STREAMS)


@pytest.mark.parametrize(
    ("text", "watermarks", "expected"),
    [
        ("FROM a GROUP BY window(a.ts, '4 seconds')", {"a": 10}, 10),
        (f"{BOUND} GROUP BY window(a.ts, '4 seconds')", {"a": 10, "b": 12}, 7),
        (f"{BOUND} GROUP BY window(a.ts, '4 seconds')", {"a": 3, "b": 12}, 3),
        (f"{BOUND} GROUP BY window(a.ts, '4 seconds')", {"a": 3, "b": None}, None),
        (f"{BOUND} AND a.ts <= b.ts - INTERVAL 2 SECONDS GROUP BY window(b.ts, '1 second')", {"a": 9, "b": 20}, 11),
        (f"{BOUND} JOIN c ON c.ts < b.ts AND c.k = b.k GROUP BY window(a.ts, '1 second')", {"a": 9, "b": 9, "c": 8}, 3),
        ("FROM a JOIN a z ON a.k = z.k AND z.ts <= a.ts GROUP BY window(a.ts, '1 second')", {"a": 9}, 9),
        ("FROM (SELECT window(ts, '4 seconds') AS w FROM a) d GROUP BY d.w", {"a": 9}, 9),
        ("FROM a GROUP BY a.k", {"a": 10}, None),
    ],
)
def test_windows_close_when_no_row_can_come_any_more(text, watermarks, expected):
    seconds = {stream: None if mark is None else mark * 1_000_000 for stream, mark in watermarks.items()}
    until = closed_until(query_of(f"SELECT COUNT(*) {text}"), seconds)
    # A bound by `<` is one microsecond less.
    assert (None if until is None else -(-until // 1_000_000) - (until % 1_000_000 == 1)) == expected


@pytest.mark.parametrize(
    ("text", "is_updating", "growing"),
    [
        ("SELECT k FROM a", False, ()),
        ("SELECT COUNT(*) FROM a", True, ()),
        ("SELECT COUNT(DISTINCT x) FROM a", True, ("distinct values of a.x",)),
        ("SELECT k, SUM(x) FROM a GROUP BY k", True, ("groups by a.k",)),
        ("SELECT k FROM a GROUP BY k", False, ("groups by a.k",)),
        ("SELECT k FROM a GROUP BY k HAVING k > 1", True, ("groups by a.k",)),
        ("SELECT DISTINCT k, x FROM a", False, ("groups by a.k, a.x",)),
        ("SELECT k, COUNT(*) FROM a GROUP BY k, window(ts, '1 second')", False, ()),
    ],
)
def test_running_groups_update_and_grow(text, is_updating, growing):
    query = query_of(text)
    assert (query.is_updating, growing_groups(query)) == (is_updating, growing)
    assert [column.name for column in answer_columns(query)][len(query.output) :] == ["_change"] * is_updating
