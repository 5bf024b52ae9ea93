from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from dovetail.optimizer.passes.choose_placing_keys import ChoosePlacingKeys, has_uneven_placing, is_uneven
from dovetail.optimizer.pipeline import plan_queries
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.placement import even_placement
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.store_plan import IndexPlan
from dovetail.query.expression import Column
from dovetail.query.stream import Stream
from dovetail.query.types import INT
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.key_stats import KeyStats
from dovetail.stats.observed import IndexName, ObservedStats

MakeQuery = Callable[[str, str], LiveQuery]
Plan = Callable[..., SharedPlan]
BY_X = "SELECT r.v FROM r JOIN t ON r.x = t.x"
BY_BOTH = "SELECT r.v FROM r JOIN s ON r.x = s.x AND r.y = s.y"
CROSSED = "SELECT r.v FROM r JOIN s ON r.x = s.y AND r.y = s.x"


@pytest.fixture
def plan(streams: Mapping[str, Stream]) -> Plan:
    def make(*queries: LiveQuery, policy: ChoosePlacingKeys | None = None) -> SharedPlan:
        chosen = policy or ChoosePlacingKeys(4)
        return plan_queries(queries, streams, even_placement(8, 4), epoch=1, placing_keys=chosen)

    return make


def indexes(plan: SharedPlan) -> dict[str, list[str]]:
    return {store.id: [index.id for index in store.indexes] for store in plan.stores}


def by_group(rows_by_index: dict[IndexName, tuple[float, ...]]) -> StatsCatalog:
    return StatsCatalog(observed=ObservedStats(keys={name: KeyStats(rows) for name, rows in rows_by_index.items()}))


def test_both_sides_are_placed_by_the_key_that_another_join_has_alone(live: MakeQuery, plan: Plan) -> None:
    found = plan(live("a", BY_X), live("b", BY_BOTH))
    assert indexes(found) == {"r": ["[x, y at x]", "[x]"], "s": ["[x, y at x]"], "t": ["[x]"]}


def test_a_join_that_lies_with_no_other_is_placed_by_its_whole_key(live: MakeQuery, plan: Plan) -> None:
    found = plan(live("a", "SELECT r.v FROM r JOIN t ON r.v = t.x"), live("b", BY_BOTH))
    assert indexes(found) == {"r": ["[v]", "[x, y]"], "s": ["[x, y]"], "t": ["[x]"]}


def test_keys_in_another_order_are_placed_by_the_same_column(live: MakeQuery, plan: Plan) -> None:
    found = plan(live("a", BY_X), live("b", CROSSED))
    # New r probe s by s.x and s.y, new s probe r by r.x and r.y: each store has its keys in both orders.
    assert indexes(found)["r"] == ["[x, y at x]", "[x]", "[y, x at x]"]
    assert indexes(found)["s"] == ["[x, y at y]", "[y, x at y]"]


def test_the_key_that_more_stores_are_placed_by_is_taken(live: MakeQuery, plan: Plan) -> None:
    found = plan(
        live("a", "SELECT r.v FROM r JOIN t ON r.x = t.v"),
        live("b", "SELECT r.v FROM r JOIN t ON r.y = t.v"),
        live("c", "SELECT s.v FROM s JOIN t ON s.y = t.v"),
        live("d", BY_BOTH),
    )
    assert indexes(found)["r"] == ["[x, y at y]", "[x]", "[y]"]


def test_later_steps_take_part(live: MakeQuery, plan: Plan) -> None:
    chain = "SELECT r.v FROM r JOIN t ON r.v = t.v JOIN s ON r.x = s.x AND t.y = s.y"
    found = plan(live("a", "SELECT s.v FROM s JOIN u ON s.y = u.y"), live("b", chain))
    assert "[x, y at y]" in indexes(found)["s"]


def test_semi_and_outer_joins_take_the_same_indexes(live: MakeQuery, plan: Plan) -> None:
    within = "s.ts BETWEEN r.ts - INTERVAL 1 SECOND AND r.ts + INTERVAL 1 SECOND"
    on = f"ON r.x = s.x AND r.y = s.y AND {within}"
    found = plan(
        live("a", BY_X),
        live("b", f"SELECT r.v FROM r LEFT JOIN s {on}"),
        live("c", f"SELECT r.v FROM r SEMI JOIN s {on}"),
    )
    assert indexes(found)["r"] == ["[x, y at x]", "[x]"]
    assert indexes(found)["s"] == ["[x, y at x]"]


@pytest.mark.parametrize("kept", ["[x, y]", "[x, y at x]", "[x, y at y]"])
def test_an_index_that_live_buckets_have_keeps_its_choice(live: MakeQuery, plan: Plan, kept: str) -> None:
    policy = ChoosePlacingKeys(4, newest_batch_by_index={("s", "[x, y at x]"): 3} | {("s", kept): 7})
    for queries in ((live("a", BY_X), live("b", BY_BOTH)), (live("b", BY_BOTH),)):
        found = indexes(plan(*queries, policy=policy))
        assert kept in found["r"]
        assert found["s"] == [kept]


def test_a_key_that_leaves_a_partition_with_too_much_places_nothing(live: MakeQuery, plan: Plan) -> None:
    queries = live("a", BY_X), live("b", BY_BOTH)
    even, uneven = (1000.0,) * 8, (9000.0, *(1000.0,) * 7)
    for store, index in (("r", "[x]"), ("s", "[x, y at x]")):
        fine = ChoosePlacingKeys(4, by_group({(store, index): even}))
        assert indexes(plan(*queries, policy=fine))["s"] == ["[x, y at x]"]
        skewed = by_group({(store, index): uneven})
        policy = ChoosePlacingKeys(4, skewed, {("s", "[x, y at x]"): 3})
        assert indexes(plan(*queries, policy=policy))["s"] == ["[x, y]"]
    placed = plan(*queries)
    assert has_uneven_placing(placed, by_group({("s", "[x, y at x]"): uneven}))
    assert not has_uneven_placing(placed, by_group({("s", "[x, y at x]"): even, ("r", "[x]"): uneven}))


def test_few_rows_are_never_even() -> None:
    assert not is_uneven(by_group({("r", "[x]"): (3.0, *(1.0,) * 7)}), ("r", "[x]"), 4)
    assert not is_uneven(StatsCatalog(), ("r", "[x]"), 4)


def test_one_key_alone_needs_no_placing_key() -> None:
    with pytest.raises(ValueError, match="one of several keys"):
        IndexPlan((Column("row", "x", INT),), placing=0)
