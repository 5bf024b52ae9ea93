"""Which key of several places the rows of an index: one by which some store of the join is placed anyway (A10).

    lineitem joins part on l_partkey = p_partkey                                    key group of l_partkey
    lineitem joins partsupp on l_partkey = ps_partkey and l_suppkey = ps_suppkey    key group of l_partkey, too

Rows with equal keys are equal in each of them, so they meet wherever any one of them sends them; and a row of lineitem
lies where it lies already, instead of a second time where the code of both keys would have it.

Indexes that meet in a first step have their keys in one order and are placed by the same of them. An index that live
buckets have keeps its choice, else they would have to be indexed anew; only where a key alone leaves one partition with
much more than others the whole key takes over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from dovetail.optimizer.draft import Draft, PlacedTrees, count_of
from dovetail.optimizer.passes.choose_routing import imbalance_limit
from dovetail.optimizer.policies import KeysOfStore, Placings
from dovetail.plan.lone_rows import MatchedRows
from dovetail.plan.placement import even_placement
from dovetail.plan.probe_tree import ProbeNode, ProbeTree
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.store_plan import IndexPlan
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.observed import IndexName


def revise(draft: Draft) -> Draft:
    """All trees with their indexes placed."""
    trees = PlacedTrees(draft.trees, draft.later_trees, draft.fills, draft.lone_rows, draft.matched_rows)
    choose = draft.policies.placing_keys
    placings = choose(trees.indexed) if choose else {}
    keyed = _placed(trees, placings) if placings else trees
    return draft if keyed == draft.keyed else replace(draft, keyed=keyed)


def is_due(draft: Draft, before: Draft) -> bool:
    """Whether the same trees may be placed by other keys. What lies well stays: buckets have these indexes."""
    choose, running = draft.policies.placing_keys, draft.running
    if isinstance(choose, ChoosePlacingKeys):
        return running is not None and has_uneven_placing(running.plan, draft.now)
    return choose != before.policies.placing_keys


def _placed(trees: PlacedTrees, placings: Placings) -> PlacedTrees:
    placed = partial(place_tree, placings=placings)
    return PlacedTrees(
        tuple(map(placed, trees.trees)),
        tuple(map(placed, trees.later)),
        tuple(replace(fill, tree=placed(fill.tree)) for fill in trees.fills),
        tuple(replace(each, tree=placed(each.tree)) for each in trees.lone_rows),
        tuple(
            MatchedRows(placed(each.from_left), placed(each.from_right), placed(each.again), each.emits)
            for each in trees.matched_rows
        ),
    )


def tell(draft: Draft) -> str:
    indexes = {(store, index.id): index for store, index in _indexes(draft.keyed.indexed)}
    placed = sum(index.placing is not None for index in indexes.values())
    return f"{placed} of {count_of(len(indexes), 'index')} by one key of several"


def place_tree(tree: ProbeTree, placings: Placings) -> ProbeTree:
    """The tree with every index placed as `placings` say."""
    return replace(tree, children=tuple(_place_node(node, placings) for node in tree.children)) if placings else tree


def _place_node(node: ProbeNode, placings: Placings) -> ProbeNode:
    placing = placings.get((node.step.target, node.step.index.keys))
    step = replace(node.step, index=replace(node.step.index, placing=placing))
    return replace(node, step=step, children=tuple(_place_node(child, placings) for child in node.children))


@dataclass(frozen=True)
class ChoosePlacingKeys:
    """The policy of an engine; `newest_batch_by_index` has the indexes of live buckets, and of which batch the newest.

    `stats` are those of now: whether keys spread shows only while they come.
    """

    partition_count: int
    stats: StatsCatalog = field(default_factory=StatsCatalog)
    newest_batch_by_index: Mapping[IndexName, int] = field(default_factory=dict)

    def __call__(self, trees: tuple[ProbeTree, ...]) -> Placings:
        placings: dict[KeysOfStore, int] = {}
        if not any(len(node.step.index.keys) > 1 for tree in trees for node in tree.walk()):
            return placings
        alone: set[KeysOfStore] = {(store, index.keys) for store, index in _indexes(trees) if len(index.keys) == 1}
        for joined in _joined_indexes(trees):
            position = self._choose(joined, alone)
            if position is not None:
                placings |= {(store, index.keys): position for store, index in joined}
        return placings

    def _choose(self, joined: list[tuple[str, IndexPlan]], alone: set[KeysOfStore]) -> int | None:
        positions = range(len(joined[0][1].keys))
        even = [place for place in positions if not self._is_uneven(joined, place)]
        kept = {place: self._newest_batch(joined, place) for place in (None, *positions)}
        newest = max(kept.values())
        if newest >= 0:
            placing = next(place for place, batch in kept.items() if batch == newest)
            return placing if placing in even else None
        gains = {place: _gains(joined, place, alone) for place in even}
        # Gains are told by store and key, so that indexes with the same keys in another order choose the same.
        return max((place for place in even if gains[place]), key=lambda p: (len(gains[p]), gains[p]), default=None)

    def _newest_batch(self, joined: list[tuple[str, IndexPlan]], place: int | None) -> int:
        """The newest batch of which a live bucket has one of the indexes, placed so; -1 if none has."""
        names = ((store, replace(index, placing=place).id) for store, index in joined)
        return max(self.newest_batch_by_index.get(name, -1) for name in names)

    def _is_uneven(self, joined: list[tuple[str, IndexPlan]], place: int) -> bool:
        """Whether one of the stores is known not to spread by the key at `place` alone."""
        return any(
            is_uneven(self.stats, (store, each.id), self.partition_count)
            for store, index in joined
            for each in (IndexPlan((index.keys[place],)), replace(index, placing=place))
        )


def has_uneven_placing(plan: SharedPlan, stats: StatsCatalog) -> bool:
    """Whether some index of the plan is placed by a key that turned out to leave a partition with too much."""
    return any(
        is_uneven(stats, (store.id, index.id), plan.placement.partition_count)
        for store in plan.stores
        for index in store.indexes
        if index.placing is not None
    )


def placing_changes(before: SharedPlan, now: SharedPlan) -> list[str]:
    """One sentence for each index that both have, placed by other keys."""
    known = {(store.id, index.keys, index.order): index for store in before.stores for index in store.indexes}
    found = (
        (store.id, index, known.get((store.id, index.keys, index.order)))
        for store in now.stores
        for index in store.indexes
    )
    return [
        f"{store}{old.id} gives way to {store}{index.id}"
        for store, index, old in found
        if old and old.placing != index.placing
    ]


def is_uneven(stats: StatsCatalog, index: IndexName, partition_count: int) -> bool:
    """Whether rows by key group would leave a partition with too much, if each had as many key groups."""
    rows_by_group = stats.rows_by_group(*index)
    if not sum(rows_by_group):
        return False
    load = [0.0] * partition_count
    placement = even_placement(len(rows_by_group), min(partition_count, len(rows_by_group)))
    for partition, rows in zip(placement.partition_by_group, rows_by_group, strict=True):
        load[partition] += rows
    return max(load) * partition_count / sum(load) > imbalance_limit(sum(load), partition_count)


def _indexes(trees: Iterable[ProbeTree]) -> Iterator[tuple[str, IndexPlan]]:
    for tree in trees:
        for node in tree.walk():
            yield node.step.target, node.step.index
        for node in tree.children:
            yield tree.start, node.step.start_index


def _joined_indexes(trees: tuple[ProbeTree, ...]) -> list[list[tuple[str, IndexPlan]]]:
    """Indexes of several keys, those together that must be placed by the same position."""
    parent: dict[KeysOfStore, KeysOfStore] = {}

    def root(keys: KeysOfStore) -> KeysOfStore:
        while parent.setdefault(keys, keys) != keys:
            keys = parent[keys]
        return keys

    for tree in trees:
        for node in tree.children:
            parent[root((tree.start, node.step.start_index.keys))] = root((node.step.target, node.step.index.keys))
    joined: dict[KeysOfStore, dict[tuple[str, str], tuple[str, IndexPlan]]] = {}
    for store, index in _indexes(trees):
        if len(index.keys) > 1:
            joined.setdefault(root((store, index.keys)), {})[store, index.id] = store, index
    return [list(each.values()) for each in joined.values()]


def _gains(joined: list[tuple[str, IndexPlan]], place: int, alone: set[KeysOfStore]) -> list[tuple[str, str]]:
    """Where another index is by the key at `place` alone: store and key."""
    found = {(store, index.keys[place]) for store, index in joined if (store, (index.keys[place],)) in alone}
    return sorted((store, str(key)) for store, key in found)
