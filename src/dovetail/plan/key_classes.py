"""Which uses should be placed alike: those whose rows meet at the first step of a probe (SASPAR's Eq. 3).

    a.k = b.k, a.m = c.m        new a probe b by k, new b probe a by k, new c probe a by m ...
    classes                     {a[k], b[k]}   {a[m], c[m]}

At the first step a partition probes with the new rows whose key groups are its own *by the placement of the index that
is probed*, and looks at the stored entries of the same key groups. So every answer is right whatever the placements,
and nothing refuses uses of one class that are placed apart. But then a partition must read its new rows, or the stored
ones, from where another one has put them: only within one placement do rows lie where they meet, without being sent a
second time. Later steps put no constraint on where rows of the start lie: what is sent there are partial results.
"""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.plan.placement import UseName, use_of
from dovetail.plan.probe_tree import ProbeTree
from dovetail.plan.shared_plan import SharedPlan


def key_classes(plan: SharedPlan) -> tuple[frozenset[UseName], ...]:
    """All uses of the plan, each in one class; those without a key are placed by nothing, and are in none."""
    classes: dict[UseName, frozenset[UseName]] = {}
    for store in plan.stores:
        for index in store.indexes:
            if index.keys:
                use = use_of(store.id, index)
                classes[use] = frozenset({use})
    for tree in (*plan.query_trees, *(fill.tree for fill in plan.fills)):
        for met in _met_first(tree):
            united = frozenset().union(*(classes.get(use, {use}) for use in met))
            classes.update(dict.fromkeys(united, united))
    return tuple(sorted(set(classes.values()), key=sorted))


def uses_of(plan: SharedPlan) -> frozenset[UseName]:
    return frozenset(use for each in key_classes(plan) for use in each)


def _met_first(tree: ProbeTree) -> Iterator[tuple[UseName, UseName]]:
    for node in tree.children:
        if node.step.index.keys:
            yield use_of(tree.start, node.step.start_index), use_of(node.step.target, node.step.index)
