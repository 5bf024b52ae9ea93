"""Bands of several columns over one index: searched apart, and each pair is found once."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from dovetail.kernels.match import group_ranges
from dovetail.runtime.probe import probe_operator
from dovetail.runtime.probe.range_demands import RangePart, range_demands
from tests.engine.conftest import Bench, Row

BANDS = {
    "narrow": ("a.k BETWEEN b.v - 1 AND b.v + 1", lambda a, b: b[1] - 1 <= a[0] <= b[1] + 1),
    "other": ("a.v BETWEEN b.v - 2 AND b.v", lambda a, b: b[1] - 2 <= a[1] <= b[1]),
    "wider": ("a.k BETWEEN b.v - 3 AND b.v + 2", lambda a, b: b[1] - 3 <= a[0] <= b[1] + 2),
    "half": ("a.v < b.v - 900", lambda a, b: a[1] < b[1] - 900),
    "both": ("a.k >= b.v AND a.v <= b.v - 500", lambda a, b: a[0] >= b[1] and a[1] <= b[1] - 500),
}
"""By name a condition and the same of rows (k, v, ts)."""


def drawn(seed: int, count: int) -> list[Row]:
    numbers = random.Random(seed)
    return [(numbers.randrange(1000), numbers.randrange(1000), float(at % 7)) for at in range(count)]


@pytest.mark.parametrize("most_groups", [1, 2, 16])
def test_each_pair_is_an_answer_of_each_query_that_wants_it_once(
    bench: Bench,
    rows_of: Callable[[Any, str], list[tuple[Any, ...]]],
    monkeypatch: pytest.MonkeyPatch,
    most_groups: int,
) -> None:
    """However many searches there are: what each finds is its own."""
    monkeypatch.setattr(group_ranges, "MOST_GROUPS", most_groups)
    session = bench.open(lateness="100 seconds")
    for name, (condition, _) in BANDS.items():
        session.create_query(f"SELECT a.k, a.v, b.k AS bk, b.v AS bv FROM a JOIN b ON {condition}", name)
    a, b = drawn(1, 90), drawn(2, 110)
    for lower in range(0, 120, 40):
        bench.push(session, a=a[lower : lower + 40], b=b[lower : lower + 40])
    for name, (_, holds) in BANDS.items():
        expected = sorted((*left[:2], *right[:2]) for left in a for right in b if holds(left, right))
        assert sorted(rows_of(session, name)) == expected


def test_bands_of_other_columns_are_parts_of_their_own(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies between them is nearly the whole index, and nobody asks for it."""
    parts: list[tuple[RangePart, ...]] = []

    def noted(*given: Any) -> tuple[RangePart, ...]:
        parts.append(range_demands(*given))
        return parts[-1]

    monkeypatch.setattr(probe_operator, "range_demands", noted)
    session = bench.open(lateness="100 seconds", partitions=1)
    for name, condition in {
        "k": "b.k BETWEEN a.k - 1 AND a.k + 1",
        "v": "b.k BETWEEN a.v - 2 AND a.v",
        "again": "b.k BETWEEN a.k - 2 AND a.k + 1",
    }.items():
        session.create_query(f"SELECT a.k, b.v FROM a JOIN b ON {condition}", name)
    bench.push(session, b=drawn(6, 500))
    bench.push(session, a=drawn(5, 500))
    widest = [int((part.searched.upper - part.searched.lower).max()) for part in parts[-1] if part.searched]
    assert sorted(widest) == [2, 3]


def test_a_query_that_passes_a_limit_stops_alone_in_all_searches(
    bench: Bench, rows_of: Callable[[Any, str], list[tuple[Any, ...]]]
) -> None:
    session = bench.open(lateness="100 seconds")
    for name in ("narrow", "other"):
        session.create_query(f"SELECT a.k, a.v, b.k AS bk, b.v AS bv FROM a JOIN b ON {BANDS[name][0]}", name)
    session.create_query(
        f"SELECT a.k, a.v, b.k AS bk, b.v AS bv FROM a JOIN b ON {BANDS['half'][0]}", "many", max_pairs_per_batch=5
    )
    a, b = drawn(3, 150), drawn(4, 150)
    bench.push(session, a=a, b=b)
    states = {record.name: record.state.value for record in session.engine.queries.records()}
    assert states == {"narrow": "running", "other": "running", "many": "quarantined"}
    for name in ("narrow", "other"):
        holds = BANDS[name][1]
        expected = sorted((*left[:2], *right[:2]) for left in a for right in b if holds(left, right))
        assert sorted(rows_of(session, name)) == expected
