"""Groups under the engine's own cost: unions from samples of rows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations

import pytest

from dovetail.optimizer.query_groups.engine_group_cost import EngineGroupCost
from dovetail.optimizer.query_groups.group_queries import JoinUse, group_uses
from dovetail.query.expression import TRUE, Column, Expression
from dovetail.query.types import BOOLEAN
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.figure import Figure, Kind, Tally
from dovetail.stats.observed import BatchSeen, ObservedStats
from dovetail.stats.selection_sample import RowsSampled

ROWS = 200
LOW, LOWER, HIGH, ODD = range(100), range(60), range(100, 200), range(1, 200, 2)


def selection(wanted: range) -> Expression:
    return Column("row", f"{wanted.start}:{wanted.stop}:{wanted.step}", BOOLEAN)


def stats_of(wanted: Sequence[range]) -> StatsCatalog:
    """Both stores have the same 200 rows, all of them sampled."""
    tallies = {}
    passed = {}
    for rows in wanted:
        text = str(selection(rows))
        passed[text] = sum(1 << row for row in rows)
        for store in ("a", "b"):
            tallies[Figure(Kind.SELECTION, (store, text))] = Tally(len(rows), ROWS)
    sampled = RowsSampled(ROWS, passed)
    observed = ObservedStats().folded(BatchSeen(0, tallies, rows_sampled={"a": sampled, "b": sampled}))
    return StatsCatalog({"a": 1000.0, "b": 2000.0}, observed=observed)


def use(query: str, a: range, b: range) -> JoinUse:
    return JoinUse(query, selection(a), selection(b))


def cost_of(*wanted: range, own_plan_gain: float = 0.0, step_rows: float = 0.0) -> EngineGroupCost:
    return EngineGroupCost(stats_of(wanted), "a", "b", 0.001, own_plan_gain=own_plan_gain, step_rows=step_rows)


def test_a_step_costs_the_rows_that_probe_and_the_pairs_that_are_found() -> None:
    cost = cost_of(LOW, LOWER)
    assert cost.cost([use("Q1", LOW, LOWER)]) == pytest.approx(500 + 600 + 2000 * 0.5 * 0.3)
    assert cost.cost([JoinUse("Q1", TRUE, TRUE)]) == pytest.approx(1000 + 2000 + 2000)
    assert cost.cost([JoinUse("Q1", TRUE, TRUE), use("Q2", LOW, LOWER)]) == pytest.approx(5000)


def test_of_the_unions_pairs_only_those_count_that_one_query_wants() -> None:
    cost = cost_of(LOW, HIGH)
    both = [use("Q1", LOW, LOW), use("Q2", HIGH, HIGH)]
    assert cost.cost(both) == pytest.approx(1000 + 2000 + 2000 * (0.25 + 0.25))


def test_a_selection_of_two_uses_is_one_set_of_rows() -> None:
    cost = EngineGroupCost(StatsCatalog({"a": 1000.0, "b": 2000.0}), "a", "b", 0.0, own_plan_gain=0.0)
    pair = [use("Q1", LOW, HIGH), use("Q2", LOW, ODD)]
    assert cost.cost(pair) == pytest.approx(1000 * 0.5 + 2000 * 0.75)


def test_rows_in_common_are_shared_and_others_are_not() -> None:
    uses = [use("Q1", LOW, LOW), use("Q2", LOWER, LOWER), use("Q3", HIGH, HIGH)]
    for gain in (0.0, 0.1):
        groups = group_uses(uses, cost_of(LOW, LOWER, HIGH, own_plan_gain=gain))
        assert [[each.query for each in group] for group in groups] == [["Q1", "Q2"], ["Q3"]]


def test_a_query_leaves_a_group_that_saves_it_less_than_a_plan_of_its_own() -> None:
    """Q2 has half of its rows in common with Q1 on both sides."""
    uses = [use("Q1", LOW, LOW), use("Q2", ODD, ODD)]
    assert len(group_uses(uses, cost_of(LOW, ODD, own_plan_gain=0.1))) == 1
    assert len(group_uses(uses, cost_of(LOW, ODD, own_plan_gain=0.4))) == 2


def test_a_step_that_is_dear_in_itself_is_shared_by_all() -> None:
    uses = [use("Q1", LOW, LOW), use("Q3", HIGH, HIGH)]
    assert len(group_uses(uses, cost_of(LOW, HIGH))) == 2
    assert len(group_uses(uses, cost_of(LOW, HIGH, step_rows=10.0))) == 1


@pytest.mark.parametrize("seed", range(20))
def test_sharing_never_costs_more_if_no_plan_of_its_own_is_hoped_for(seed: int) -> None:
    chance = random.Random(seed)
    wanted = []
    for _ in range(6):
        begin = chance.randrange(150)
        wanted.append(range(begin, begin + chance.choice([1, 10, 50]), chance.choice([1, 2])))
    cost = cost_of(*wanted)
    uses = [use(f"Q{number}", *chance.choices(wanted, k=2)) for number in range(5)]
    distinct = list({(each.a_text, each.b_text): each for each in uses}.values())
    for count in range(1, len(distinct) + 1):
        for group in combinations(distinct, count):
            assert cost.cost(group) <= sum(cost.cost([each]) for each in group) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_what_was_asked_before_does_not_change_an_answer(seed: int) -> None:
    chance = random.Random(seed)
    wanted = [range(begin, begin + 30) for begin in range(0, 170, 20)]
    cost = cost_of(*wanted)
    uses = [use(f"Q{number % 4}", *chance.choices(wanted, k=2)) for number in range(8)]
    for _ in range(200):
        group = chance.sample(uses, chance.randint(1, 5))
        assert cost.cost(group) == cost_of(*wanted).cost(group)


def test_a_chance_above_one_is_refused() -> None:
    with pytest.raises(ValueError, match="match=2"):
        EngineGroupCost(StatsCatalog(), "a", "b", 2.0)
