"""Which queries suffer when a shared piece fails."""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.plan.probe_tree import ProbeTree
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.store_plan import IndexPlan
from dovetail.query.expression import Expression


def _asking_trees(plan: SharedPlan) -> Iterator[ProbeTree]:
    """Those of queries, and of fills, which fail under a name of their own."""
    yield from plan.query_trees
    yield from (fill.tree for fill in plan.fills)


def queries_of_selection(plan: SharedPlan, store: str, selection: Expression) -> set[str]:
    """The queries that ask this selection of this store, as start or as partner."""
    queries: set[str] = set()
    for tree in _asking_trees(plan):
        if tree.start == store:
            queries |= {leg.query for leg in tree.legs if leg.selection == selection}
        for node in tree.walk():
            if node.step.target == store:
                queries |= {leg.query for leg in node.legs if leg.selection == selection}
    return queries


def selections_of_queries(plan: SharedPlan, store: str, queries: set[str]) -> set[Expression]:
    """What these queries ask of rows of this store."""
    selections: set[Expression] = set()
    for tree in _asking_trees(plan):
        if tree.start == store:
            selections |= {leg.selection for leg in tree.legs if leg.query in queries}
        for node in tree.walk():
            if node.step.target == store:
                selections |= {leg.selection for leg in node.legs if leg.query in queries}
    return selections


def queries_of_index(plan: SharedPlan, store: str, index: IndexPlan) -> set[str]:
    """The queries that probe this index, or probe others in its order."""
    queries: set[str] = set()
    for tree in _asking_trees(plan):
        for node in tree.walk():
            if node.step.target == store and node.step.index == index:
                queries |= {leg.query for leg in node.legs}
        if tree.start == store:
            for node in tree.children:
                if node.step.start_index == index:
                    queries |= {leg.query for leg in node.legs}
    return queries
