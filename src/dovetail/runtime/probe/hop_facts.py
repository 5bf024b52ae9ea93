"""What follows from a hop of the plan alone, worked out once: who asks the same of rows of the same stores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dovetail.lowering.flat_plan import FlatHop, FlatNode, FlatPlan, Way
from dovetail.plan.shared_plan import SharedPlan
from dovetail.query.expression import Expression, all_of
from dovetail.runtime.probe.emit_order import EmitOrder, emit_order
from dovetail.runtime.probe.node_facts import confirmation

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
NONE = -1
ROWS_A_PIECE = 1 << 16


@dataclass(frozen=True)
class Confirmation:
    """What equal codes do not prove, of members of these stores."""

    predicate: Expression
    stores: tuple[str, ...]


@dataclass(frozen=True)
class Residual:
    """Legs, by number, whose residuals are one predicate over members of the same stores; `masks[node]` their bits."""

    predicate: Expression
    stores: tuple[str, ...]
    legs: tuple[int, ...]
    masks: U64


@dataclass(frozen=True)
class HopFacts:
    """By the number of a node: its confirmation, whether it is probed alone. By child: whose key it has.

    `code_columns[node]` are the codes by row that its children are keyed by.
    """

    queries_of_node: tuple[frozenset[str], ...]
    asks_of_node: tuple[frozenset[int], ...]
    start_asks_of_node: tuple[frozenset[int], ...]
    confirmations: tuple[Confirmation, ...]
    confirmation_of_node: I64
    residuals: tuple[Residual, ...]
    is_alone: npt.NDArray[np.bool_]
    is_counted: npt.NDArray[np.bool_]
    key_of_child: I64
    code_columns: tuple[tuple[int, ...], ...]
    emit_order: EmitOrder

    @property
    def rows_a_piece(self) -> int | None:
        """How many pairs are decided before somebody looks at limits; None: all, where nothing is evaluated of them."""
        return ROWS_A_PIECE if self.confirmations or self.residuals else None


def hop_facts(plan: SharedPlan, flat: FlatPlan, hop: int, timezone: str) -> HopFacts:
    name = f"facts of hop {hop}"
    found: HopFacts | None = plan.derived.get(name)
    if found is None:
        following = flat.hops[hop].nodes if hop < len(flat.hops) else ()
        found = plan.derived[name] = _hop_facts(plan, flat.hops[hop - 1], following, timezone)
    return found


def _hop_facts(plan: SharedPlan, hop: FlatHop, following: tuple[FlatNode, ...], timezone: str) -> HopFacts:
    confirmations: dict[Confirmation, int] = {}
    confirmation_of_node = np.full(len(hop.nodes), NONE, np.int64)
    legs_by_residual: dict[tuple[Expression, tuple[str, ...]], list[int]] = {}
    number = 0
    for node in hop.nodes:
        stores = (*node.stores, node.node.step.target)
        predicate = confirmation(node.node, timezone)
        if predicate is not None:
            asked = Confirmation(predicate, stores)
            confirmation_of_node[node.number] = confirmations.setdefault(asked, len(confirmations))
        for leg in node.legs:
            if leg.leg.residuals:
                legs_by_residual.setdefault((all_of(leg.leg.residuals), stores), []).append(number)
            number += 1
    return HopFacts(
        tuple(frozenset(leg.leg.query for leg in node.legs) for node in hop.nodes),
        tuple(frozenset(leg.ask for leg in node.legs) for node in hop.nodes),
        tuple(frozenset(leg.start_ask for leg in node.legs) for node in hop.nodes),
        tuple(confirmations),
        confirmation_of_node,
        tuple(_residual(hop, *asked, legs) for asked, legs in legs_by_residual.items()),
        np.array([node.way is Way.ALONE for node in hop.nodes], np.bool_),
        # What a fill joins is not what new rows meet: planners shall not learn from it.
        np.array([node.node.step.before_batch is None for node in hop.nodes], np.bool_),
        _numbered((node.node.step.probe_keys, node.node.step.index.placing, node.stores) for node in following),
        tuple(_code_columns(node, following) for node in hop.nodes),
        emit_order(plan, hop),
    )


def _residual(hop: FlatHop, predicate: Expression, stores: tuple[str, ...], legs: list[int]) -> Residual:
    masks = np.zeros(len(hop.nodes), np.uint64)
    for number in legs:
        masks[hop.leg_node[number]] |= np.uint64(1 << hop.legs[number].bit)
    return Residual(predicate, stores, tuple(legs), masks)


def _numbered(things: Iterable[object]) -> I64:
    """Equal things have equal numbers."""
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(thing, len(numbers)) for thing in things], np.int64)


def _code_columns(node: FlatNode, following: tuple[FlatNode, ...]) -> tuple[int, ...]:
    columns = (following[child].key_codes for _, child in node.children)
    return tuple(column for column in columns if column != NONE)
