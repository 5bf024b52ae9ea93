"""The uses of a store (SASPAR's stream(q:n)): its rows as one key places them, whoever shares that key.

A key places rows that probe by it and rows that are found by it; an order within a key places nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from dovetail.plan.probe_tree import ProbeTree, member_name
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.store_plan import ROW, index_id
from dovetail.query.expression import TRUE, Expression, rename_relations


@dataclass(frozen=True)
class Use:
    """`keys` over `row`; of the rows only those count that one of `selections` wants."""

    store: str
    keys: tuple[Expression, ...]
    selections: frozenset[Expression]

    def __post_init__(self) -> None:
        if not self.keys:
            raise ValueError(f"a use of {self.store} needs a key: nothing places rows without one")

    @cached_property
    def id(self) -> str:
        """The id of the plain index by this key."""
        return index_id(self.keys)

    @property
    def wants_all(self) -> bool:
        return TRUE in self.selections


def uses_by_store(plan: SharedPlan) -> dict[str, tuple[Use, ...]]:
    """In the order of their ids; a store whose rows nobody places by a key is not here."""
    selections: dict[tuple[str, tuple[Expression, ...]], set[Expression]] = {}
    for tree in plan.query_trees:
        for store, keys, selection in _asked(tree):
            selections.setdefault((store, keys), set()).add(selection)
    found: dict[str, list[Use]] = {}
    for (store, keys), wanted in selections.items():
        found.setdefault(store, []).append(Use(store, keys, frozenset(wanted)))
    return {store: tuple(sorted(uses, key=lambda use: use.id)) for store, uses in sorted(found.items())}


def _asked(tree: ProbeTree) -> Iterator[tuple[str, tuple[Expression, ...], Expression]]:
    """Store, key and selection of everything that probes first or is probed."""
    start_selection = {(leg.query, leg.start): leg.selection for leg in tree.legs}
    for node in tree.children:
        keys = tuple(rename_relations(key, {member_name(0): ROW}) for key in node.step.probe_keys)
        if keys:
            yield from ((tree.start, keys, start_selection[leg.query, leg.start]) for leg in node.legs)
    for node in tree.walk():
        if node.step.index.keys:
            yield from ((node.step.target, node.step.index.keys, leg.selection) for leg in node.legs)
