"""A flat plan for people."""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.lowering.flat_plan import FlatPlan


def flat_plan_lines(flat: FlatPlan) -> Iterator[str]:
    """A line a node: the same for the same plan."""
    for number, hop in enumerate(flat.hops, 1):
        for node in hop.nodes:
            children = [(flat.hops[number].nodes[child].node.id, mask) for mask, child in node.children]
            following = ", ".join(f"{name} {mask:016x}" for name, mask in children) or "answers"
            legs = f"{node.mask:016x} of {len({leg.leg.query for leg in node.legs})}"
            step = f"{node.node.id}: {node.node.step}, {node.way.value}"
            yield f"hop {number} #{node.number} {step}, {legs} -> {following}"
