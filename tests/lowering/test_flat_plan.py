from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dovetail.kernels.match.special_values import NO_LOWER, NO_UPPER
from dovetail.lowering.check_flat_plan import check_flat_plan
from dovetail.lowering.flat_plan import FlatPlan, Way
from dovetail.lowering.lower_plan import flat_plan
from dovetail.lowering.node_arrays import bound_terms
from dovetail.lowering.print_flat_plan import flat_plan_lines
from dovetail.plan.placement import Placements, even_placement
from dovetail.plan.probe_tree import Emit, Leg, MemberBound, ProbeNode, ProbeTree, RangeEnd, StoredRange
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.store_plan import Retention, StorePlan
from dovetail.query.expression import TRUE, Column
from dovetail.query.join_query import OutputColumn
from dovetail.query.types import INT
from tests.support.generators.small_plan import INDEX, KEY, plan_of, step


@pytest.mark.parametrize("queries", [1, 2, 64, 65, 130, 200])
def test_every_leg_has_a_bit_which_it_keeps_on_its_way(queries: int) -> None:
    plan = plan_of(queries)
    flat = flat_plan(plan)
    check_flat_plan(plan, flat)
    assert len(flat.hops[0].nodes) == -(-queries // 64)
    bit_by_query = {leg.leg.query: (node.number, leg.bit) for node in flat.hops[0].nodes for leg in node.legs}
    parent = {child: node.number for node in flat.hops[0].nodes for _, child in node.children}
    for node in flat.hops[1].nodes:
        assert {bit_by_query[leg.leg.query] for leg in node.legs} == {
            (parent[node.number], leg.bit) for leg in node.legs
        }
    # Those that go on are neighbours: not every word of legs has a child of its own.
    assert len(flat.hops[1].nodes) <= queries // 2 // 64 + 2


def test_the_same_plan_prints_the_same_lines_and_is_lowered_once() -> None:
    plan = plan_of(70)
    assert flat_plan(plan) is flat_plan(plan)
    lines = list(flat_plan_lines(flat_plan(plan)))
    assert lines == list(flat_plan_lines(flat_plan(plan_of(70))))
    assert len(lines) == sum(len(hop.nodes) for hop in flat_plan(plan).hops)


def test_a_leg_that_is_lost_or_sent_elsewhere_is_noticed() -> None:
    plan = plan_of(6)
    flat = flat_plan(plan)
    first = flat.hops[0].nodes[0]

    def changed(**parts: object) -> FlatPlan:
        hop = replace(flat.hops[0], nodes=(replace(first, **parts),))  # type: ignore[arg-type]
        return replace(flat, hops=(hop, flat.hops[1]))

    for wrong in (
        changed(legs=first.legs[1:]),
        changed(legs=(*first.legs[1:], first.legs[1])),
        changed(number=1),
        changed(children=()),
        changed(children=((1, 0),)),
        replace(flat, hops=flat.hops[:1]),
    ):
        with pytest.raises((ValueError, IndexError)):
            check_flat_plan(plan, wrong)


def test_nodes_within_ranges_are_probed_alone() -> None:
    lower = RangeEnd(Column("m0", "k", INT))
    ranged = Leg("", 0, ranges=(StoredRange(KEY, lower, None, is_exact=True),))
    ways = [node.way for hop in flat_plan(plan_of(4, ranged)).hops for node in hop.nodes]
    assert ways == [Way.BY_KEYS, Way.ALONE]


def test_a_key_that_is_a_column_of_one_member_has_its_codes_by_row() -> None:
    flat = flat_plan(plan_of(2))
    (following,) = flat.hops[1].nodes
    assert following.key_member == 1
    assert flat.stores[flat.code_columns[following.key_codes].store] == "b"


def test_bounds_are_what_a_stored_time_may_be_apart_from_a_member() -> None:
    assert bound_terms((MemberBound(0, 2, 5), MemberBound(2, 0, 7), MemberBound(2, 1, 3)), 2) == (
        (0, -7, 5),
        (1, -3, NO_UPPER),
    )
    assert bound_terms((MemberBound(0, 1, 4),), 1) == ((0, NO_LOWER, 4),)


def test_legs_of_equal_bounds_are_one_class_and_the_loosest_are_those_of_all() -> None:
    bounds = [(MemberBound(0, 1, 5),), (MemberBound(0, 1, 5),), (MemberBound(0, 1, 9), MemberBound(1, 0, 2)), ()]
    output = (OutputColumn("k", Column("m0", "k", INT)),)
    legs = tuple(Leg(f"q{number}", 0, bounds=each) for number, each in enumerate(bounds))

    def arrays_of(count: int) -> object:
        emits = tuple(Emit(leg.query, 0, output) for leg in legs[:count])
        node = ProbeNode("b", 1, step("b"), legs[:count], emits, ())
        stores = tuple(StorePlan(n, n, None, None, ("k",), (TRUE,), (INDEX,), Retention(None)) for n in "ab")
        complete_from = tuple((leg.query, 0) for leg in legs[:count])
        tree = ProbeTree("a", legs[:count], (node,))
        return flat_plan(SharedPlan(1, stores, (tree,), Placements(even_placement(2, 1)), complete_from)).hops[0].arrays

    three: object = arrays_of(3)
    assert three.class_mask.tolist() == [0b011, 0b100]  # type: ignore[attr-defined]
    assert (three.loose_lower.tolist(), three.loose_upper.tolist()) == ([NO_LOWER], [9])  # type: ignore[attr-defined]
    # Somebody takes rows of any time.
    assert np.diff(arrays_of(4).loose_begin).tolist() == [0]  # type: ignore[attr-defined]
