"""Query-sets sampled by the source tasks arrive in the statistics: unions of selections as a plain model has them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from dovetail.engine.control.registry import QueryState
from dovetail.plan.store_plan import ROW
from dovetail.query.expression import TRUE, Call, Column, Expression, Literal
from dovetail.query.types import BOOLEAN, INT
from dovetail.stats.estimate import Estimate, Origin
from dovetail.stats.selection_sample import SAMPLED_ROWS_A_BATCH

if TYPE_CHECKING:
    from conftest import Bench, Row

JOIN = "SELECT a.v FROM a JOIN b ON a.k = b.k WHERE "


def selection(function: str, limit: int) -> Expression:
    return Call(function, (Column(ROW, "v", INT), Literal(limit, INT)), BOOLEAN)


def rows_with(values: list[int], *, since_s: float = 0.0) -> list[Row]:
    return [(place % 20, value, since_s + place * 0.001) for place, value in enumerate(values)]


@pytest.mark.parametrize("splits", [1, 3])
def test_a_small_batch_is_its_own_sample(bench: Bench, splits: int) -> None:
    chance = random.Random(splits)
    values = [chance.randrange(10) for _ in range(100)]
    session = bench.open()
    session.create_query(JOIN + "a.v > 3", "over")
    session.create_query(JOIN + "a.v < 6", "under")
    session.create_query(JOIN + "a.v > 7 AND b.v > 1", "high")
    bench.push(session, a=rows_with(values), b=rows_with([1, 2, 3]), splits=splits)
    stats = session.engine.head.statistics
    over, under, high = selection("gt", 3), selection("lt", 6), selection("gt", 7)
    assert stats.union_share("a", [over, under]).value == pytest.approx(1.0)
    assert stats.union_share("a", [under, high]).value == pytest.approx(sum(v < 6 or v > 7 for v in values) / 100)
    assert stats.union_share("a", [over, high]).value == pytest.approx(sum(v > 3 for v in values) / 100)
    assert stats.union_share("a", [over, TRUE]) == Estimate(1.0, Origin.GIVEN)
    # Rows that nobody wants are in the sample too: nobody asks for 6 and 7.
    assert stats.observed.samples["a"].used.bit_count() == 100
    assert "b" not in stats.observed.samples


def test_tasks_count_by_the_rows_that_came_to_them(bench: Bench) -> None:
    values = [0] * 700 + [9] * 300
    session = bench.open()
    session.create_query(JOIN + "a.v > 5", "some")
    session.create_query(JOIN + "a.v > 3", "more")
    bench.push(session, a=rows_with(values), b=rows_with([1]), splits=4)
    sample = session.engine.head.statistics.observed.samples["a"]
    assert sample.used.bit_count() == SAMPLED_ROWS_A_BATCH
    passed = sample.rows_of(str(selection("gt", 5)), 0.3).passed.bit_count()
    assert passed / SAMPLED_ROWS_A_BATCH == pytest.approx(0.3, abs=0.02)


def test_a_created_selection_is_known_from_its_first_batch_on(bench: Bench) -> None:
    session = bench.open()
    session.create_query(JOIN + "a.v > 5", "over")
    session.create_query(JOIN + "a.v > 3", "more")
    bench.push(session, a=rows_with(list(range(10))), b=rows_with([1]))
    session.create_query(JOIN + "a.v < 2", "under")
    over, under = selection("gt", 5), selection("lt", 2)
    assert session.engine.head.statistics.union_share("a", [over, under]).origin is Origin.ASSUMED
    bench.push(session, a=rows_with(list(range(10)), since_s=1), b=rows_with([1], since_s=1))
    assert session.engine.head.statistics.union_share("a", [over, under]).value == pytest.approx(0.6)


def test_a_selection_that_fails_in_one_task_leaves_the_others_in_place(bench: Bench) -> None:
    session = bench.open()
    bad = session.create_query(JOIN + "10 / a.v > 3", "fails")
    session.create_query(JOIN + "a.v > 5", "over")
    session.create_query(JOIN + "a.v < 2", "under")
    bench.push(session, a=rows_with([1, 2, 8, 9, 0, 1, 5, 9]), b=rows_with([1]), splits=2)
    assert bad.status.state is QueryState.QUARANTINED
    stats = session.engine.head.statistics
    assert stats.union_share("a", [selection("gt", 5), selection("lt", 2)]).value == pytest.approx(6 / 8)
    assert stats.rows("a").value == pytest.approx(8)
    assert len(stats.observed.samples["a"].batches[0].passed_by_selection) == 2
