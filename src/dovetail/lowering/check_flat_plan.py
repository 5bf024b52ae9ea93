"""Whether a flat plan says what the plan says that it was made of; a mistake here would be wrong answers, silently."""

from __future__ import annotations

from collections import Counter

from dovetail.lowering.flat_plan import FlatNode, FlatPlan
from dovetail.plan.shared_plan import SharedPlan


def check_flat_plan(plan: SharedPlan, flat: FlatPlan) -> None:
    """Raise unless every leg of every node is there once, and goes where its plan says with the bit that it has."""
    for hop in flat.hops:
        for number, node in enumerate(hop.nodes):
            _check_node(flat, number, node)
    nodes = [node for tree in plan.probing_trees for node in tree.walk()]
    expected = Counter((node.id, leg.query, leg.start) for node in nodes for leg in node.legs)
    flat_nodes = [node for hop in flat.hops for node in hop.nodes]
    found = Counter((node.node.id, leg.leg.query, leg.leg.start) for node in flat_nodes for leg in node.legs)
    if expected != found:
        raise ValueError("the flat plan has other legs than its plan")


def _check_node(flat: FlatPlan, number: int, node: FlatNode) -> None:
    if number != node.number:
        raise ValueError(f"flat node {node.node.id} is not where its number says")
    bits = [leg.bit for leg in node.legs]
    if len(set(bits)) != len(bits) or not all(0 <= bit < 64 for bit in bits):
        raise ValueError(f"flat node {node.node.id}: two legs have one bit")
    leaving = Counter(leg.bit for leg in node.legs if leg.emit is not None)
    for mask, child in node.children:
        following = flat.hops[len(node.stores)].nodes[child]
        if following.mask != mask or following.stores != (*node.stores, node.node.step.target):
            raise ValueError(f"flat node {node.node.id}: its child {following.node.id} expects others")
        leaving.update(leg.bit for leg in following.legs)
    if leaving != Counter(bits):
        raise ValueError(f"flat node {node.node.id}: legs that come in and go out differ")
