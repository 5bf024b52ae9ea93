"""The legs of a hop that emit, in an order in which those whose answers are alike follow one another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dovetail.lowering.flat_plan import NONE, FlatHop, FlatLeg
from dovetail.plan.probe_tree import Emit
from dovetail.plan.shared_plan import SharedPlan
from dovetail.query.join_query import OutputColumn
from dovetail.runtime.probe.frame import Frame

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Alike:
    """Answers of the same columns, called the same, of rows of the same stores: made at once, whoever asks for them.

    There is one for all hops of a plan, known by itself: comparing the columns would take longer than making them.
    """

    stores: tuple[str, ...]
    output: tuple[OutputColumn, ...]


@dataclass(frozen=True)
class EmitOrder:
    """By rank the legs that emit; `rank_of_bit[node, bit]`. Ranks from `begins[k]` on are of `alike[k]`.

    That is None where rows are no answers: those of a leg go their own way.
    """

    legs: tuple[FlatLeg, ...]
    stores: tuple[tuple[str, ...], ...]
    rank_of_bit: I64
    begins: I64
    alike: tuple[Alike | None, ...]


class Taker(Protocol):
    """Where whole rows go."""

    def take(self, emit: Emit, frame: Frame) -> None: ...

    def take_alike(self, alike: Alike, queries: list[str], sizes: list[int], frame: Frame) -> None:
        """Answers of several queries, one query's after the other's, each so many rows."""


def emit_order(plan: SharedPlan, hop: FlatHop) -> EmitOrder:
    known: dict[tuple[tuple[str, ...], tuple[OutputColumn, ...]], Alike] = plan.derived.setdefault("alike answers", {})
    legs_by_alike: dict[Alike, list[int]] = {}
    others: list[int] = []
    stores_of_leg: dict[int, tuple[str, ...]] = {}
    for number, leg in enumerate(hop.legs):
        node = hop.nodes[hop.leg_node[number]]
        stores = stores_of_leg[number] = (*node.stores, node.node.step.target)
        if leg.emit is not None and leg.emit.is_answer:
            alike = known.setdefault((stores, leg.emit.output), Alike(stores, leg.emit.output))
            legs_by_alike.setdefault(alike, []).append(number)
        elif leg.emit is not None:
            others.append(number)
    stretches: list[tuple[Alike | None, list[int]]] = [*legs_by_alike.items(), *((None, [number]) for number in others)]
    order = [number for _, legs in stretches for number in legs]
    rank_of_bit = np.full((max(len(hop.nodes), 1), 64), NONE, np.int64)
    for rank, number in enumerate(order):
        rank_of_bit[hop.leg_node[number], hop.legs[number].bit] = rank
    return EmitOrder(
        tuple(hop.legs[number] for number in order),
        tuple(stores_of_leg[number] for number in order),
        rank_of_bit,
        np.cumsum([0, *(len(legs) for _, legs in stretches)]),
        tuple(alike for alike, _ in stretches),
    )
