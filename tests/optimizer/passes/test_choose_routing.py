from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dovetail.optimizer.passes.choose_routing import (
    choose_routings,
    fixed_routing,
    keep_routings,
    routing_changes,
    unusual,
)
from dovetail.optimizer.policies import ChosenRouting
from dovetail.plan.placement import Placements, even_placement
from dovetail.plan.probe_tree import Emit, Leg, ProbeNode, ProbeStep, ProbeTree
from dovetail.plan.routing import DEALT, HASH, RANDOM, Routing
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.store_plan import ROW, IndexPlan, Retention, StorePlan
from dovetail.plan.visibility import Visibility
from dovetail.query.expression import TRUE, Column
from dovetail.query.join_query import OutputColumn
from dovetail.query.types import INT
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.figure import Figure, Kind, Tally
from dovetail.stats.key_sketch import SKETCH_CODES, KeySketch
from dovetail.stats.key_stats import KeyStats
from dovetail.stats.observed import ObservedStats

GROUPS = 128
INDEX = IndexPlan((Column(ROW, "k", INT),))
HOT = 3 << 60
WARM = 12 << 60


def plan_of(partitions: int = 4) -> SharedPlan:
    stores = tuple(StorePlan(name, name, None, None, ("k",), (TRUE,), (INDEX,), Retention(None)) for name in ("a", "b"))
    trees = tuple(ProbeTree(start, (Leg("q", 0),), (node_of(target),)) for start, target in (("a", "b"), ("b", "a")))
    return SharedPlan(1, stores, trees, Placements(even_placement(GROUPS, partitions)), (("q", 0),))


def node_of(target: str) -> ProbeNode:
    step = ProbeStep(target, INDEX, (Column("m0", "k", INT),), Visibility.UP_TO_NOW)
    emit = Emit("q", 0, (OutputColumn("k", Column("m0", "k", INT)),))
    return ProbeNode(f"to {target}", 1, step, (Leg("q", 0),), (emit,), ())


def keys_of(rows: float, heavy: dict[int, float]) -> KeyStats:
    """The other rows are spread evenly over very many keys."""
    by_group = np.full(GROUPS, rows * (1 - sum(heavy.values())) / GROUPS)
    for code, share in heavy.items():
        by_group[code >> 57] += rows * share
    codes = tuple(range(0, SKETCH_CODES * (1 << 44), 1 << 44))
    return KeyStats(tuple(by_group.tolist()), heavy, {1: KeySketch(codes)})


def stats_of(a: KeyStats, b: KeyStats, stored: float = 100_000.0, found: float = 1.0) -> StatsCatalog:
    tallies = {Figure(Kind.STORED_ROWS, (store,)): Tally(stored, 1.0) for store in ("a", "b")}
    tallies |= {Figure(Kind.STEP, (f"to {store}",)): Tally(found, 1.0) for store in ("a", "b")}
    return StatsCatalog(observed=ObservedStats(tallies, {("a", "[k]"): a, ("b", "[k]"): b}))


EVEN = keys_of(20_000, {})


def chosen(stats: StatsCatalog, before: tuple[ChosenRouting, ...] = (), partitions: int = 4) -> dict[str, Routing]:
    return {each.store: each.routing for each in choose_routings(plan_of(partitions), stats, before)}


def test_even_keys_are_routed_by_hash() -> None:
    assert chosen(stats_of(EVEN, EVEN)) == {"a": HASH, "b": HASH}
    assert unusual(plan_of(), choose_routings(plan_of(), stats_of(EVEN, EVEN), ())) == ()


def test_a_key_that_is_hot_on_both_sides_is_dealt_out_where_it_is_stored() -> None:
    hot = keys_of(20_000, {HOT: 0.3, WARM: 0.01})
    assert chosen(stats_of(hot, hot)) == {"a": Routing(split_stored=(HOT,)), "b": Routing(split_stored=(HOT,))}


def test_a_key_that_is_hot_only_among_probing_rows_is_dealt_out_there() -> None:
    """Facts against a dimension that has one row of each key: dealing out that row would balance nothing."""
    facts = keys_of(20_000, {HOT: 0.3})
    routing = chosen(stats_of(facts, EVEN, stored=1000.0))
    assert routing["b"] == Routing(split_probing=(HOT,))


def test_few_rows_change_nothing() -> None:
    hot = keys_of(500, {HOT: 0.9})
    assert chosen(stats_of(hot, hot)) == {"a": HASH, "b": HASH}


def test_a_key_that_cools_stays_split_for_a_while() -> None:
    plan = plan_of()
    hot, cooler, cold = (
        stats_of(keys, keys, found=0.0) for keys in (keys_of(20_000, {HOT: share}) for share in (0.3, 0.012, 0.001))
    )
    first = choose_routings(plan, hot, ())
    assert {each.routing for each in first} == {Routing(split_stored=(HOT,))}
    assert {each.routing for each in choose_routings(plan, cooler, ())} == {HASH}
    kept = choose_routings(plan, cooler, first)
    assert kept == first
    cooled = choose_routings(plan, cold, kept)
    assert {each.routing for each in cooled} == {HASH}
    assert len(routing_changes(first, cooled)) == 2


def test_pairs_are_work_too() -> None:
    """A hundredth of the rows on both sides is a ten-thousandth of all pairs, where others meet one in a million."""
    warm = keys_of(20_000, {WARM: 0.012})
    assert chosen(stats_of(warm, warm, found=0.0)) == {"a": HASH, "b": HASH}
    assert chosen(stats_of(warm, warm, found=1.0))["a"] == Routing(split_stored=(WARM,))


def test_groups_out_of_balance_without_a_hot_key_get_contrand() -> None:
    by_group = np.full(GROUPS, 100.0)
    by_group[:16] = 400.0
    uneven = replace(EVEN, rows_by_group=tuple(by_group.tolist()))
    routing = chosen(stats_of(uneven, uneven), partitions=8)["a"]
    assert routing.subgroups is not None
    assert not routing.split_codes
    fewer_rows = replace(EVEN, rows_by_group=tuple((by_group * 0.5 + 50).tolist()))
    before = choose_routings(plan_of(8), stats_of(uneven, uneven), ())
    assert choose_routings(plan_of(8), stats_of(fewer_rows, fewer_rows), before) == before
    assert chosen(stats_of(EVEN, EVEN), before, partitions=8) == {"a": HASH, "b": HASH}


def test_probes_of_an_index_without_a_key_are_dealt_out_unless_random_is_asked() -> None:
    keyless = IndexPlan(())
    plan = plan_of()
    plan = replace(plan, stores=tuple(replace(store, indexes=(INDEX, keyless)) for store in plan.stores))
    for policy in (choose_routings, keep_routings, fixed_routing(HASH), fixed_routing(Routing(subgroups=2))):
        found = policy(plan, stats_of(EVEN, EVEN), ())
        assert {each.routing for each in found if each.index == "[]"} == {DEALT}
        assert all(index == "[k]" for _, index, _ in unusual(plan, found))
    at_random = fixed_routing(RANDOM)(plan, stats_of(EVEN, EVEN), ())
    assert {each.routing for each in at_random} == {RANDOM}
    with pytest.raises(ValueError, match="no key to route by"):
        replace(plan, routings=(("a", "[]", HASH),))


def test_what_runs_is_kept_where_plans_shall_stay() -> None:
    hot = keys_of(20_000, {HOT: 0.3})
    first = choose_routings(plan_of(), stats_of(hot, hot), ())
    assert keep_routings(plan_of(), stats_of(EVEN, EVEN), first) == first
