from __future__ import annotations

from dataclasses import replace

import pytest

from dovetail.plan.placement import Placement, Placements, even_placement
from dovetail.plan.probe_tree import Emit, Leg, ProbeNode, ProbeStep, ProbeTree
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.store_plan import ROW, IndexPlan, Retention, StorePlan, store_id
from dovetail.plan.visibility import Visibility
from dovetail.query.expression import TRUE, Column
from dovetail.query.join_query import HopWindow, OutputColumn
from dovetail.query.types import INT

KEY = Column(ROW, "k", INT)
INDEX = IndexPlan((KEY,))
STORE = StorePlan("b", "b", None, None, ("k",), (TRUE,), (INDEX,), Retention(None))
STEP = ProbeStep("b", INDEX, (Column("m0", "k", INT),), Visibility.UP_TO_NOW)
LEG = Leg("q#1", 0)
EMIT = Emit("q#1", 0, (OutputColumn("k", KEY),))
NODE = ProbeNode("b#1", 1, STEP, (LEG,), (EMIT,), ())
TREE = ProbeTree("a", (LEG,), (NODE,))


def plan_of(stores: tuple[StorePlan, ...], trees: tuple[ProbeTree, ...]) -> SharedPlan:
    return SharedPlan(1, stores, trees, Placements(even_placement(2, 1)), (("q#1", 0),))


def test_a_plan_whose_parts_fit_is_accepted() -> None:
    plan = plan_of((replace(STORE, id="a"), STORE), (TREE,))
    assert plan.store("b") == STORE
    assert plan.hop_count == 1


def test_a_tree_needs_a_store_to_start_from() -> None:
    with pytest.raises(ValueError, match="no store a"):
        plan_of((STORE,), (TREE,))


def test_a_probe_needs_its_store() -> None:
    with pytest.raises(ValueError, match="node b#1 probes an index that no store keeps"):
        plan_of((replace(STORE, id="a"),), (TREE,))


def test_a_probe_needs_its_index() -> None:
    with pytest.raises(ValueError, match="node b#1 probes an index that no store keeps"):
        plan_of((replace(STORE, id="a"), replace(STORE, indexes=())), (TREE,))


def test_hops_follow_the_longest_path() -> None:
    leaf = replace(NODE, id="b#2", member=2)
    longer = replace(NODE, emits=(), children=(leaf,))
    stores = (replace(STORE, id="a"), STORE)
    assert plan_of(stores, (replace(TREE, children=(NODE, replace(longer, id="b#3"))),)).hop_count == 2
    assert plan_of(stores, ()).hop_count == 1


def test_a_query_that_comes_in_must_go_out_once() -> None:
    other = replace(LEG, query="q#2")
    for legs, emits in (((LEG,), ()), ((), (EMIT,)), ((LEG, other), (EMIT,)), ((LEG, LEG), (EMIT, EMIT))):
        with pytest.raises(ValueError, match="queries that come in and go out differ"):
            replace(NODE, legs=legs, emits=emits)


def test_two_starts_of_one_query_may_take_the_same_step() -> None:
    node = replace(NODE, legs=(LEG, replace(LEG, start=1)), emits=(EMIT, replace(EMIT, start=1)))
    assert len(node.legs) == 2


def test_a_probe_needs_as_many_keys_as_its_index() -> None:
    with pytest.raises(ValueError, match="as many keys"):
        replace(STEP, probe_keys=())


def test_an_empty_plan_prints() -> None:
    assert str(plan_of((), ()).text_tree({})) == ("shared plan, epoch 1: 0 queries, 1 hops\n├─ stores\n└─ probes")


def test_stores_of_one_stream_differ_by_window() -> None:
    windows = [None, HopWindow("ts", 4, 2), HopWindow("ts", 4, 4), HopWindow("ts", 4, 2, 1)]
    assert len({store_id("s", window) for window in windows}) == 4


@pytest.mark.parametrize(
    ("keep_us_by_stream", "max_time_us", "watermarks", "is_dead"),
    [
        (None, 0, {"a": 10**9}, False),
        ((("a", 5),), 10, {"a": 15}, False),
        ((("a", 5),), 10, {"a": 16}, True),
        ((("a", 5),), 10, {}, False),
        ((("a", -5),), 10, {"a": 6}, True),
        ((("a", 5), ("b", 20)), 10, {"a": 100, "b": 30}, False),
        ((("a", 5), ("b", 20)), 10, {"a": 100, "b": 31}, True),
        ((("a", 5),), None, {}, True),  # rows without a time satisfy no bound
        (None, None, {"a": 10}, False),
    ],
)
def test_a_row_dies_when_no_stream_can_bring_a_partner(
    keep_us_by_stream: tuple[tuple[str, int], ...] | None,
    max_time_us: int | None,
    watermarks: dict[str, int],
    is_dead: bool,
) -> None:
    assert Retention(keep_us_by_stream).is_dead(max_time_us, watermarks) == is_dead


def test_a_use_without_a_placement_of_its_own_has_the_usual_one() -> None:
    swapped = Placement((1, 0), 2)
    plan = replace(plan_of((STORE,), ()), placements=Placements(even_placement(2, 2), (("b", "[k]", swapped),)))
    assert plan.placement == even_placement(2, 2)
    assert plan.placement_of("b", INDEX) == plan.placement_of("b", IndexPlan((KEY,), order=KEY)) == swapped
    assert plan.placement_of("a", INDEX) == plan.placement
