"""The plan that all queries share, in words."""

from __future__ import annotations

from dovetail.core.text_tree import TextTree
from dovetail.engine.explain.records.plan import PlanExplained
from dovetail.engine.explain.text.costs import change_tree, cost_tree
from dovetail.engine.explain.text.partitions import partitioning_tree
from dovetail.engine.explain.text.steps import probe_trees
from dovetail.engine.explain.text.stores import groups_tree, intermediate_tree, store_tree
from dovetail.engine.explain.text.words import counted, lines


def plan_text(plan: PlanExplained) -> TextTree:
    joined = {store.store: store for store in plan.stores if store.is_intermediate}
    kept = (
        *(store_tree(store) for store in plan.stores if not store.is_intermediate),
        *(intermediate_tree(each, joined.get(each.store)) for each in plan.intermediates),
        *map(groups_tree, plan.groups),
    )
    steps = tuple(tree for probe in plan.probes for tree in probe_trees(probe))
    counts = f", rows counted in batch {plan.batch - 1}" if plan.batch else ""
    coming = [lines("the plan changes with the next batch", plan.next_change, "reasons")] if plan.next_change else []
    return TextTree(
        f"{counted(len(plan.queries), 'query')} in one plan (epoch {plan.epoch})",
        (
            *([TextTree("what is kept", kept)] if kept else []),
            *([TextTree(f"how rows meet{counts}", steps)] if steps else []),
            cost_tree(plan.cost),
            partitioning_tree(plan.partitioning),
            change_tree(plan.last_change),
            *coming,
        ),
    )
