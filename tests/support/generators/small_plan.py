"""A plan made by hand: a joins b for all queries, then c for every other one."""

from __future__ import annotations

from dataclasses import replace

from dovetail.plan.placement import Placements, even_placement
from dovetail.plan.probe_tree import Emit, Leg, ProbeNode, ProbeStep, ProbeTree
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.store_plan import ROW, IndexPlan, Retention, StorePlan
from dovetail.plan.visibility import Visibility
from dovetail.query.expression import TRUE, Column
from dovetail.query.join_query import OutputColumn
from dovetail.query.types import INT

KEY = Column(ROW, "k", INT)
INDEX = IndexPlan((KEY,))
START_KEY = Column("m0", "k", INT)


def plan_of(queries: int, leg_of_c: Leg | None = None) -> SharedPlan:
    """a joins b for all; then c for the even ones, and the odd ones are answered."""
    names = [f"q{number}" for number in range(queries)]
    legs = tuple(Leg(name, 0) for name in names)
    on = tuple(leg if leg_of_c is None else replace(leg_of_c, query=leg.query) for leg in legs[::2])
    output = (OutputColumn("k", Column("m0", "k", INT)),)
    c = ProbeNode("c", 2, step("c", Column("m1", "k", INT)), on, tuple(Emit(leg.query, 0, output) for leg in on), ())
    b = ProbeNode("b", 1, step("b"), legs, tuple(Emit(leg.query, 0, output) for leg in legs[1::2]), (c,))
    stores = tuple(StorePlan(n, n, None, None, ("k",), (TRUE,), (INDEX,), Retention(None)) for n in "abc")
    trees = (ProbeTree("a", legs, (b,)),)
    return SharedPlan(1, stores, trees, Placements(even_placement(2, 1)), tuple((name, 0) for name in names))


def step(target: str, key: Column = START_KEY) -> ProbeStep:
    return ProbeStep(target, INDEX, (key,), Visibility.UP_TO_NOW)
