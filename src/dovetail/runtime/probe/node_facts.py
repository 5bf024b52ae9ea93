"""What follows from a node alone, worked out once for a plan: hundreds of queries have thousands of nodes."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.kernels.arrow_types import arrow_type
from dovetail.kernels.match.hash_keys import is_exact_type
from dovetail.kernels.match.match_pairs import LegBounds
from dovetail.plan.probe_tree import Emit, ProbeNode, member_name
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.store_plan import ROW
from dovetail.query.expression import Call, Expression, all_of, rename_relations
from dovetail.query.types import BOOLEAN
from dovetail.runtime.probe.probe import bounds_of


@dataclass(frozen=True)
class NodeFacts:
    """`members` are those of probing rows that `bounds` speak of; legs are numbered as in the node.

    `confirm` must be evaluated because equal codes do not prove equal keys; None when they do.
    """

    node: ProbeNode
    queries: frozenset[str]
    members: tuple[int, ...]
    bounds: LegBounds
    confirm: Expression | None
    emit_by_leg: tuple[Emit | None, ...]


def facts_of(plan: SharedPlan, node: ProbeNode, timezone: str) -> NodeFacts:
    found: NodeFacts | None = plan.derived.get(node.id)
    if found is None or found.node is not node:
        found = plan.derived[node.id] = _facts_of(node, timezone)
    return found


def _facts_of(node: ProbeNode, timezone: str) -> NodeFacts:
    members, bounds = bounds_of(node)
    emits = {(emit.query, emit.start): emit for emit in node.emits}
    return NodeFacts(
        node,
        frozenset(leg.query for leg in node.legs),
        members,
        bounds,
        confirmation(node, timezone),
        tuple(emits.get((leg.query, leg.start)) for leg in node.legs),
    )


def confirmation(node: ProbeNode, timezone: str) -> Expression | None:
    """What must hold of a pair besides equal codes; None where these prove equal keys."""
    keys = node.step.index.keys
    if not keys or (len(keys) == 1 and is_exact_type(arrow_type(keys[0].type, timezone))):
        return None
    equalities = tuple(
        Call("eq", (probe, rename_relations(stored, {ROW: member_name(node.member)})), BOOLEAN)
        for probe, stored in zip(node.step.probe_keys, keys, strict=True)
    )
    return all_of(equalities)
