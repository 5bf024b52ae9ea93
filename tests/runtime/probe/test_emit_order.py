from __future__ import annotations

import numpy as np

from dovetail.lowering.flat_plan import NONE
from dovetail.lowering.lower_plan import flat_plan
from dovetail.runtime.probe.emit_order import emit_order
from tests.support.generators.small_plan import plan_of


def test_answers_of_the_same_columns_are_one_stretch_of_ranks() -> None:
    """The odd queries are answered after b, all with one column; of 130 queries they are in several words."""
    plan = plan_of(130)
    hop = flat_plan(plan).hops[0]
    order = emit_order(plan, hop)
    assert sorted(leg.leg.query for leg in order.legs) == sorted(f"q{number}" for number in range(1, 130, 2))
    assert order.begins.tolist() == [0, 65]
    (alike,) = order.alike
    assert alike is not None
    assert alike.stores == ("a", "b")
    assert set(order.stores) == {("a", "b")}
    for rank, leg in enumerate(order.legs):
        (node,) = (node for node in hop.nodes if leg in node.legs)
        assert order.rank_of_bit[node.number, leg.bit] == rank
    assert np.count_nonzero(order.rank_of_bit != NONE) == len(order.legs)


def test_the_same_columns_of_other_stores_are_not_alike_and_those_of_a_plan_are_known_again() -> None:
    plan = plan_of(4)
    flat = flat_plan(plan)
    first, second = (emit_order(plan, hop) for hop in flat.hops)
    assert {alike.stores for alike in (*first.alike, *second.alike) if alike is not None} == {
        ("a", "b"),
        ("a", "b", "c"),
    }
    assert emit_order(plan, flat.hops[0]).alike == first.alike
