"""Makes the flat plan of a plan, once: nodes are cut into words of legs, and all that they ask is numbered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dovetail.kernels.word_bits import WORD_BITS
from dovetail.lowering.check_flat_plan import check_flat_plan
from dovetail.lowering.flat_plan import NONE, Ask, CodeColumn, FlatHop, FlatLeg, FlatNode, FlatPlan, Way
from dovetail.lowering.node_arrays import node_arrays
from dovetail.plan.probe_tree import Leg, ProbeNode, ProbeTree, member_number
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.store_plan import ROW, IndexPlan
from dovetail.query.expression import Column, Expression


def flat_plan(plan: SharedPlan) -> FlatPlan:
    """Of one plan always the same record, which was checked against it."""
    found: FlatPlan | None = plan.derived.get("flat plan")
    if found is None:
        found = _Lowering(plan).flat_plan()
        check_flat_plan(plan, found)
        plan.derived["flat plan"] = found
    return found


@dataclass
class _Numbers:
    """Things by the order in which they came."""

    place_by_thing: dict[Any, int] = field(default_factory=dict)

    def of(self, thing: Any) -> int:
        return self.place_by_thing.setdefault(thing, len(self.place_by_thing))

    def things(self) -> tuple[Any, ...]:
        return tuple(self.place_by_thing)


class _Lowering:
    def __init__(self, plan: SharedPlan) -> None:
        self._plan = plan
        self._store_number = {store.id: number for number, store in enumerate(plan.stores)}
        self._complete_from = dict(plan.complete_from_by_query)
        self._query_number = {query: number for number, query in enumerate(self._complete_from)}
        self._asks = _Numbers()
        self._texts: dict[Expression, str] = {}
        self._code_columns = _Numbers()
        self._indexes: dict[tuple[str, str], tuple[int, IndexPlan]] = {}
        self._hops: list[list[FlatNode | None]] = []

    def flat_plan(self) -> FlatPlan:
        for tree in self._plan.trees:
            self._add_tree(tree, None)
        for fill in self._plan.fills:
            self._add_tree(fill.tree, fill.store)
        hops = tuple(self._hop([node for node in nodes if node is not None]) for nodes in self._hops)
        indexes = tuple((store, index) for (store, _), (_, index) in self._indexes.items())
        return FlatPlan(
            hops,
            tuple(self._store_number),
            tuple(self._query_number),
            self._asks.things(),
            indexes,
            self._code_columns.things(),
        )

    def _add_tree(self, tree: ProbeTree, fill: str | None) -> None:
        start_legs = {(leg.query, leg.start): leg for leg in tree.legs}
        for node in tree.children:
            ordered = list(_by_path(node))
            for lower in range(0, len(ordered), WORD_BITS):
                bits = {leg: bit for bit, leg in enumerate(ordered[lower : lower + WORD_BITS])}
                self._add(node, 1, bits, (tree.start,), start_legs, fill)

    def _add(
        self,
        node: ProbeNode,
        hop: int,
        bits: dict[tuple[str, int], int],
        stores: tuple[str, ...],
        start_legs: dict[tuple[str, int], Leg],
        fill: str | None,
    ) -> int:
        if len(self._hops) < hop:
            self._hops.append([])
        number = len(self._hops[hop - 1])
        self._hops[hop - 1].append(None)
        target = node.step.target
        emits = {(emit.query, emit.start): emit for emit in node.emits}
        legs = []
        for place, leg in enumerate(node.legs):
            bit = bits.get((leg.query, leg.start))
            if bit is None:
                continue
            start_ask = NONE if hop > 1 else self._ask(stores[0], start_legs[leg.query, leg.start])
            emit = emits.get((leg.query, leg.start))
            legs.append(FlatLeg(leg, place, bit, self._ask(target, leg), start_ask, emit))
        children = []
        for child in node.children:
            own = {(leg.query, leg.start) for leg in child.legs} & bits.keys()
            if own:
                child_bits = {leg: bits[leg] for leg in own}
                mask = sum(1 << bit for bit in child_bits.values())
                children.append((mask, self._add(child, hop + 1, child_bits, (*stores, target), start_legs, fill)))
        key_member, key_codes = self._key(node, stores)
        index, _ = self._indexes.setdefault((target, node.step.index.id), (len(self._indexes), node.step.index))
        flat = FlatNode(
            node, number, stores, tuple(legs), tuple(children), index, _way(legs), key_member, key_codes, fill
        )
        self._hops[hop - 1][number] = flat
        return number

    def _ask(self, store: str, leg: Leg) -> int:
        asked = Ask(
            self._store_number[store], leg.selection, self._complete_from[leg.query], self._text_of(leg.selection)
        )
        return self._asks.of(asked)

    def _text_of(self, selection: Expression) -> str:
        """Thousands of legs ask a few hundred selections."""
        found = self._texts.get(selection)
        if found is None:
            found = self._texts[selection] = str(selection)
        return found

    def _key(self, node: ProbeNode, stores: tuple[str, ...]) -> tuple[int, int]:
        """Where all of a key are columns of one member: the member, and the codes by its row."""
        keys = node.step.probe_keys
        members = {key.relation for key in keys if isinstance(key, Column)}
        if not keys or len(members) != 1 or not all(isinstance(key, Column) for key in keys):
            return NONE, NONE
        member = member_number(members.pop())
        columns = tuple(Column(ROW, key.name, key.type) for key in keys if isinstance(key, Column))
        column = CodeColumn(self._store_number[stores[member]], columns, node.step.index.placing)
        return member, self._code_columns.of(column)

    def _hop(self, nodes: list[FlatNode]) -> FlatHop:
        legs = tuple(leg for node in nodes for leg in node.legs)
        leg_node = np.array([node.number for node in nodes for _ in node.legs], np.int64)
        leg_query = np.array([self._query_number[leg.leg.query] for leg in legs], np.int64)
        return FlatHop(
            tuple(nodes), legs, node_arrays(nodes, self._store_number, self._complete_from), leg_node, leg_query
        )


def _by_path(node: ProbeNode) -> Iterator[tuple[str, int]]:
    """The legs of a node so that those which go on together are neighbours: more than a word of them share a path."""
    yield from ((emit.query, emit.start) for emit in node.emits)
    for child in node.children:
        yield from _by_path(child)


def _way(legs: list[FlatLeg]) -> Way:
    is_alone = any(leg.leg.ranges or (leg.emit is not None and leg.emit.factorization) for leg in legs)
    return Way.ALONE if is_alone else Way.BY_KEYS
