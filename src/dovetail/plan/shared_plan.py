"""The whole plan of one epoch: stores, probe trees, placements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from dovetail.core.text_tree import TextTree
from dovetail.plan.fill import FillPlan
from dovetail.plan.group_plan import GroupPlan
from dovetail.plan.lone_rows import LoneRows, MatchedRows
from dovetail.plan.placement import Placement, Placements, all_in_one, use_of
from dovetail.plan.probe_tree import Leg, ProbeNode, ProbeTree
from dovetail.plan.routing import DEALT, HASH, RANDOM, Routing, Routings
from dovetail.plan.shipping import Shipping
from dovetail.plan.store_plan import IndexPlan, StorePlan
from dovetail.query.expression import TRUE


def usual_routing(index: IndexPlan) -> Routing:
    """Rows are placed by their key; where there is none, whoever probes is placed anywhere."""
    return HASH if index.keys else DEALT


@dataclass(frozen=True)
class SharedPlan:
    """Everything the runtime needs to know; a function of the live queries and the statistics."""

    epoch: int
    stores: tuple[StorePlan, ...]
    trees: tuple[ProbeTree, ...]
    placements: Placements
    complete_from_by_query: tuple[tuple[str, int], ...]
    fills: tuple[FillPlan, ...] = ()
    routings: Routings = ()
    lone_rows: tuple[LoneRows, ...] = ()
    matched_rows: tuple[MatchedRows, ...] = ()
    groups: tuple[GroupPlan, ...] = ()
    shipping: Shipping | None = None

    def __post_init__(self) -> None:
        ids = {store.id for store in self.stores}
        for fill in self.fills:
            # A fill may probe indexes that no store keeps: its rows are old, what they lack is built in memory.
            if not {fill.store, fill.driver, *(node.step.target for node in fill.tree.walk())} <= ids:
                raise ValueError(f"the fill of {fill.store} needs a store that is not there")
        kept = {(store.id, index.id) for store in self.stores for index in store.indexes}
        for tree in self.query_trees:
            if tree.start not in ids:
                raise ValueError(f"no store {tree.start}")
            for node in tree.walk():
                if (node.step.target, node.step.index.id) not in kept:
                    raise ValueError(f"node {node.id} probes an index that no store keeps")
        keyless = {(store.id, index.id) for store in self.stores for index in store.indexes if not index.keys}
        for name, index_name, routing in self.routings:
            if (name, index_name) in keyless and routing not in (DEALT, RANDOM):
                raise ValueError(f"{name}{index_name} has no key to route by")

    def store(self, store_id: str) -> StorePlan:
        return self._store_by_id[store_id]

    @cached_property
    def _store_by_id(self) -> dict[str, StorePlan]:
        return {store.id: store for store in self.stores}

    @property
    def placement(self) -> Placement:
        """The usual one: of groups, and of all uses that have no other. All have the same partitions."""
        return self.placements.usual

    def placement_of(self, store_id: str, index: IndexPlan) -> Placement:
        return self.placements.of_use(use_of(store_id, index))

    def routing(self, store_id: str, index: IndexPlan) -> Routing:
        return self._routing_by_index.get((store_id, index.id)) or usual_routing(index)

    @cached_property
    def _routing_by_index(self) -> dict[tuple[str, str], Routing]:
        return {(store, index): routing for store, index, routing in self.routings}

    def ships(self, store: StorePlan) -> bool:
        """Whether rows of the store travel to the partitions that keep them; else they stay where they were read."""
        return self.shipping is not None and bool(self.shipping.parcels(store))

    @property
    def ships_rows(self) -> bool:
        """Whether there is a stage between the source and the first hop that keeps what was shipped."""
        return any(self.ships(store) for store in self.stores)

    @cached_property
    def in_one_partition(self) -> SharedPlan:
        """The same for one task that does everything, for which work need not be spread. Shipped rows lie where they
        were sent: there nothing changes.
        """
        if self.placement.partition_count == 1 or self.ships_rows:
            return self
        return replace(self, placements=Placements(all_in_one(self.placement.group_count)), routings=())

    @cached_property
    def derived(self) -> dict[str, Any]:
        """What the runtime works out of a node, by the node's id: kept as long as the plan, whatever the batch."""
        return {}

    @cached_property
    def hop_count(self) -> int:
        """Stages after the source: the longest probe path, whatever the number of queries, and one for groups."""
        probes = max((child.depth for tree in self.probing_trees for child in tree.children), default=1)
        return probes + 1 if self.groups else probes

    def group(self, group_id: str) -> GroupPlan:
        return next(group for group in self.groups if group.id == group_id)

    @property
    def probing_trees(self) -> tuple[ProbeTree, ...]:
        """What new rows start, and what stored rows start in fills."""
        return (*self.trees, *(fill.tree for fill in self.fills))

    @property
    def query_trees(self) -> tuple[ProbeTree, ...]:
        """Everything that queries ask of stores: pairs, and who has a partner."""
        lone = (each.tree for each in self.lone_rows)
        return (*self.trees, *lone, *(tree for each in self.matched_rows for tree in each.trees))

    def asked_legs(self) -> Iterator[tuple[str, Leg]]:
        """What queries ask of the rows of a store, with the store; those that answer pairs start from all of theirs."""
        for tree in self.query_trees:
            yield from ((tree.start, leg) for leg in tree.legs)
        for tree in self.query_trees[len(self.trees) :]:
            yield from ((node.step.target, leg) for node in tree.walk() for leg in node.legs)

    @property
    def deciding_stores(self) -> frozenset[str]:
        """Stores that hold undecided rows, or partners of such rows."""
        trees = (each.tree for each in self.lone_rows)
        return frozenset(store for tree in trees for store in (tree.start, *(n.step.target for n in tree.walk())))

    def text_tree(self, name_by_query: dict[str, str]) -> TextTree:
        names = _Names(name_by_query)
        stores = tuple(store_tree(store) for store in self.stores)
        trees = tuple(_tree_of(tree, names) for tree in self.trees)
        head = f"shared plan, epoch {self.epoch}: {len(name_by_query)} queries, {self.hop_count} hops"
        fills = tuple(
            TextTree(
                f"{fill.store} from stored {fill.driver} of batches before {fill.before_batch}",
                tuple(_node_tree(node, names) for node in fill.tree.children),
            )
            for fill in self.fills
        )
        shown = [TextTree("stores", stores), TextTree("probes", trees)]
        shown += [TextTree("fills", fills)] if fills else []
        lone = (*(_lone_tree(each, names) for each in self.lone_rows), *_matched_trees(self.matched_rows, names))
        shown += [TextTree("rows by their partners", lone)] if lone else []
        return TextTree(head, tuple(shown))


class _Names:
    def __init__(self, name_by_query: dict[str, str]) -> None:
        self._name_by_query = name_by_query

    def of(self, legs: tuple[Leg, ...]) -> str:
        # A self-join takes a step once for each of its starts.
        names = sorted({self._name_by_query.get(leg.query, leg.query) for leg in legs})
        shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
        return f"for {shown}" if len(names) == 1 else f"shared by {len(names)}: {shown}"


def store_tree(store: StorePlan) -> TextTree:
    wanted = "all rows" if store.keeps_all else f"rows that one of {len(store.selections)} selections wants"
    keep = store.retention.keep_us_by_stream
    if keep is None:
        kept = "kept for ever: this store grows without bound"
    elif not keep:
        kept = "kept for the batch only"
    else:
        kept = "kept until " + " and ".join(f"watermark({stream}) > time + {us / 1e6:g} s" for stream, us in keep)
    indexes = tuple(TextTree(f"index {index.id}") for index in store.indexes)
    return TextTree(f"{store.id} ({', '.join(store.columns)}): {wanted}; {kept}", indexes)


def _tree_of(tree: ProbeTree, names: _Names) -> TextTree:
    return TextTree(
        f"new {tree.start} ({names.of(tree.legs)})", tuple(_node_tree(node, names) for node in tree.children)
    )


def _lone_tree(lone: LoneRows, names: _Names) -> TextTree:
    decided = f"time + {lone.upper_us / 1e6:g} s < watermark({lone.partner_stream})"
    steps = tuple(_node_tree(node, names) for node in lone.tree.children)
    return TextTree(f"{lone.tree.start} without a partner, once {decided}", steps)


def _matched_trees(matched: tuple[MatchedRows, ...], names: _Names) -> Iterator[TextTree]:
    for each in matched:
        steps = tuple(_node_tree(node, names) for tree in each.trees for node in tree.children)
        yield TextTree(f"{each.from_left.start} with a partner, when the first is there", steps)


def _node_tree(node: ProbeNode, names: _Names) -> TextTree:
    below = [
        TextTree(
            f"emit {names.of((leg,)).removeprefix('for ')}"
            + (f" where {leg.selection}" if leg.selection != TRUE else "")
        )
        for leg in node.legs
        if leg.query in {emit.query for emit in node.emits}
    ]
    return TextTree(
        f"m{node.member} = {node.step} ({names.of(node.legs)})",
        (
            *below[:8],
            *([TextTree(f"emit {len(below) - 8} more")] if len(below) > 8 else []),
            *(_node_tree(child, names) for child in node.children),
        ),
    )
