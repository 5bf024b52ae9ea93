"""Each form of a condition that gives a range, beside a twin that must not."""

from __future__ import annotations

import pytest

from dovetail.frontend.compile_sql import compile_sql
from dovetail.optimizer.passes.choose_search import choose_search
from dovetail.optimizer.passes.derive_ranges import derive_ranges
from dovetail.plan.probe_tree import RangeEnd, StoredRange
from dovetail.plan.store_plan import EVENT_TIME, ROW
from dovetail.query.expression import Expression, rename_relations
from dovetail.query.stream import Stream
from dovetail.query.types import parse_column_type

COLUMNS = (
    ("i", "int"),
    ("j", "int"),
    ("l", "bigint"),
    ("f", "float"),
    ("x", "double"),
    ("y", "double"),
    ("p", "decimal(10,2)"),
    ("q", "decimal(12,4)"),
    ("w", "decimal(30,2)"),
    ("s", "string"),
    ("d", "date"),
    ("u", "timestamp"),
    ("n", "timestamp_ntz"),
    ("b", "boolean"),
    ("ts", "timestamp"),
)
STREAM = Stream("r", tuple((name, parse_column_type(kind)) for name, kind in COLUMNS), "ts", 0)


def residuals_of(condition: str, timezone: str = "UTC") -> list[Expression]:
    """Row a is stored, b and c are members 0 and 1."""
    text = f"SELECT a.i FROM r a, r b, r c WHERE a.j = b.j AND b.j = c.j AND ({condition})"
    query = compile_sql(text, {"r": STREAM}, timezone=timezone)
    names = {"a": ROW, "b": "m0", "c": "m1"}
    return [rename_relations(residual, names) for residual in query.residuals]


def end_text(end: RangeEnd, sign: str) -> str:
    offset = f" {end.offset:+}" if end.offset or isinstance(end.offset, float) else ""
    return f"{sign}{'=' if end.is_inclusive else ''} {end.value}{offset}"


def text_of(found: StoredRange) -> str:
    ends = [end_text(end, sign) for end, sign in ((found.lower, ">"), (found.upper, "<")) if end is not None]
    return f"{str(found.stored).removeprefix('row.')} {', '.join(ends)}{'' if found.is_exact else ' (coarse)'}"


def ranges_of(condition: str) -> list[str]:
    derived = derive_ranges(residuals_of(condition))
    dropped = all(found.is_exact for found in derived.ranges)
    assert bool(derived.residuals) == (not dropped or not derived.ranges)
    return [text_of(found) for found in derived.ranges]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a.i < b.i", "i < m0.i"),
        ("b.i < a.i", "i > m0.i"),
        ("NOT (a.i < b.i)", "i >= m0.i"),
        ("a.i + 5 <= b.i", "i <= m0.i -5"),
        ("a.i - 5 <= b.i - 7", "i <= m0.i -2"),
        ("a.i - b.i >= 3", "i >= m0.i +3"),
        ("b.i - a.i >= 3", "i <= m0.i -3"),
        ("b.i - a.i - 2 >= 3", "i <= m0.i -5"),
        ("-(a.i - b.i) < 4", "i > m0.i -4"),
        ("a.i < b.l", "i < m0.l"),
        ("ABS(a.i - b.i) <= 3", "i >= m0.i -3, <= m0.i +3"),
        ("ABS(b.l - a.i) < 3", "i > m0.l -3, < m0.l +3"),
        ("a.i BETWEEN b.i - 1 AND b.i + 2", "i >= m0.i -1, <= m0.i +2"),
        ("b.i BETWEEN a.i - 1 AND a.i + 2", "i >= m0.i -2, <= m0.i +1"),
        ("a.i - b.i BETWEEN -1 AND 2", "i >= m0.i -1, <= m0.i +2"),
        ("a.i = b.i + c.i", "i >= add(m0.i, m1.i), <= add(m0.i, m1.i)"),
        ("a.i - b.i = 3", "i >= m0.i +3, <= m0.i +3"),
        ("a.i > b.i AND a.i < c.i", "i > m0.i, < m1.i"),
        ("a.i * 2 < b.i", "mul(row.i, 2:int) < m0.i"),
        ("a.d < b.d", "d < m0.d"),
        ("a.d BETWEEN date_sub(b.d, 2) AND b.d + 3", "d >= m0.d -2, <= m0.d +3"),
        ("datediff(a.d, b.d) <= 7", "d <= m0.d +7"),
        ("a.u < b.u + INTERVAL 2 SECONDS", "u < m0.u +2000000"),
        ("a.u - b.u <= INTERVAL 2 SECONDS", "u <= m0.u +2000000"),
        ("a.n < b.n + INTERVAL 2 DAYS", "n < m0.n +172800000000"),
        ("a.u < b.u + INTERVAL 2 DAYS", "u < time_add(m0.u, 172800000000:interval)"),
        ("a.p < b.p", "p < m0.p"),
        ("a.p <= b.p + 1.5", "p <= m0.p +150"),
        ("ABS(a.p - b.p) <= 0.5", "p >= m0.p -50, <= m0.p +50"),
        ("a.p < b.q", "cast(row.p):decimal(12,4) < m0.q"),
        ("a.b < b.b", "b < m0.b"),
        ("a.x < b.x", "x < m0.x"),
        ("a.f < b.x", "f < m0.x"),
        ("a.x <= b.x + 1.5e0", "x <= add(m0.x, 1.5:double)"),
        ("a.w < b.w", "w <= m0.w (coarse)"),
        ("a.s < b.s", "s <= m0.s (coarse)"),
        ("a.x - b.x < 2.5e0", "x <= m0.x +2.5 (coarse)"),
        ("b.x - a.x < 2.5e0", "x >= m0.x -2.5 (coarse)"),
        ("a.x - b.x >= 0e0", "x >= m0.x +0.0 (coarse)"),
        ("ABS(b.x - a.x) <= 2.5e0", "x >= m0.x -2.5, <= m0.x +2.5 (coarse)"),
    ],
)
def test_conditions_that_give_a_range(condition: str, expected: str) -> None:
    assert ranges_of(condition) == [expected]


@pytest.mark.parametrize(
    "condition",
    [
        "a.i <> b.i",
        "a.i <=> b.i",
        "a.i < b.i OR a.l < b.l",
        "a.i + b.i < 5",
        "-a.i + b.i < 5",
        "a.i < a.j + b.i",
        "ABS(a.i - b.i) >= 3",
        "ABS(a.i - b.i) <= b.j",
        "a.i * b.i < 5",
        "10 DIV a.i < b.i",
        "a.i < 10 DIV b.i",
        "b.x - a.x >= 2.5e0",
        "a.x - b.x = 2.5e0",
        "a.x + b.x < 1e0",
        "a.w - b.w < 1.00",
        "CAST(a.s AS INT) < b.i",
        "a.i < length(a.s) + b.i",
    ],
)
def test_conditions_that_give_none(condition: str) -> None:
    assert ranges_of(condition) == []


def test_differences_of_times_are_searched_by_what_the_clocks_show() -> None:
    residuals = residuals_of("a.u - b.u <= INTERVAL 1 HOUR", "Europe/Berlin")
    derived = derive_ranges(residuals)
    assert [text_of(found) for found in derived.ranges] == [
        "cast(row.u):timestamp_ntz <= cast(m0.u):timestamp_ntz +3600000000"
    ]
    assert derived.residuals == ()


def test_the_first_end_of_each_side_counts_and_the_others_stay() -> None:
    derived = derive_ranges(residuals_of("a.i < b.i AND a.i < c.i AND a.i >= 2 * b.j"))
    assert [text_of(found) for found in derived.ranges] == ["i >= mul(2:int, m0.j), < m0.i"]
    assert [str(residual) for residual in derived.residuals] == ["lt(row.i, m1.i)"]


@pytest.mark.parametrize(
    ("condition", "has_keys", "is_timed", "order", "range_count", "residual_count"),
    [
        ("a.i < b.i", False, False, "row.i", 1, 0),
        ("a.i < b.i", True, False, None, 0, 1),
        ("ABS(a.i - b.i) < 5", True, True, "row.i", 1, 0),
        ("a.i < b.i AND ABS(a.l - b.l) < 5", False, False, "row.l", 2, 0),
        ("a.i < b.i AND ABS(a.l - b.l) < 5", True, False, "row.l", 2, 0),
        ("a.s < b.s AND a.x < b.x", False, True, "row.x", 2, 1),
        ("a.i <> b.i", False, True, str(EVENT_TIME), 0, 1),
        ("a.i <> b.i", False, False, None, 0, 1),
        ("a.i <> b.i", True, True, None, 0, 1),
        # The second range would be looked at in rows that nobody wants, and it could overflow there.
        ("ABS(a.l - b.l) < 5 AND a.i * 2 < b.i", False, False, "row.l", 1, 1),
    ],
)
def test_the_order_of_a_step(
    condition: str, has_keys: bool, is_timed: bool, order: str | None, range_count: int, residual_count: int
) -> None:
    search = choose_search(residuals_of(condition), has_keys=has_keys, is_timed=is_timed)
    assert (None if search.order is None else str(search.order)) == order
    assert (len(search.ranges), len(search.residuals)) == (range_count, residual_count)


@pytest.mark.parametrize(
    ("condition", "is_timed", "order"),
    [
        ("a.u - b.u < INTERVAL 1 HOUR", False, "cast(row.u):timestamp_ntz"),
        ("a.u - b.u < INTERVAL 1 HOUR", True, str(EVENT_TIME)),
        ("a.u - b.u BETWEEN INTERVAL -1 HOUR AND INTERVAL 1 HOUR", True, "cast(row.u):timestamp_ntz"),
    ],
)
def test_half_of_a_difference_of_times_is_searched_by_their_bounds(condition: str, is_timed: bool, order: str) -> None:
    search = choose_search(residuals_of(condition, "Europe/Berlin"), has_keys=False, is_timed=is_timed)
    assert str(search.order) == order
