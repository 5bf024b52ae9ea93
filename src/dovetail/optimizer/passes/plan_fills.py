"""The probe tree that fills an intermediate: its maintaining query, started by stored rows of one member."""

from __future__ import annotations

from dataclasses import replace

from dovetail.optimizer.draft import Draft
from dovetail.optimizer.orders import Orders
from dovetail.optimizer.passes.share_probe_prefixes import share_probe_prefixes
from dovetail.plan.fill import FillPlan, FillSource, filled_by
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.probe_tree import ProbeNode
from dovetail.plan.visibility import Visibility
from dovetail.stats.catalog import StatsCatalog


def revise(draft: Draft) -> Draft:
    maintaining = {live.into: live for live in draft.forms.running if live.into is not None}
    filled = [(maintaining[kept.intermediate.id], kept.fill) for kept in draft.decisions.intermediates if kept.fill]
    fills = tuple(plan_fill(query, source, draft.stats, draft.decisions.orders) for query, source in filled)
    return draft if fills == draft.fills else replace(draft, fills=fills)


def tell(draft: Draft) -> str:
    filled = ", ".join(f"{fill.store} from stored {fill.driver}" for fill in draft.fills)
    return filled or "nothing is filled"


def filling_query(maintaining: LiveQuery) -> LiveQuery:
    """The maintaining query under the fill's name: rows are counted, and errors told, apart from its own."""
    return replace(maintaining, id=filled_by(maintaining.into or ""))


def plan_fill(maintaining: LiveQuery, source: FillSource, stats: StatsCatalog, orders: Orders) -> FillPlan:
    """The maintaining query's own order for the driver, so that its indexes serve the fill, too."""
    filling = filling_query(maintaining)
    own = {(filling.id, alias): order for (query, alias), order in orders.items() if query == maintaining.id}
    trees = share_probe_prefixes((filling,), stats, orders=own)
    tree = next(tree for tree in trees if tree.start == source.driver)
    children = tuple(_older_only(node, filling.id, source.before_batch) for node in tree.children)
    return FillPlan(maintaining.into or "", source.before_batch, replace(tree, children=children))


def _older_only(node: ProbeNode, query: str, before_batch: int) -> ProbeNode:
    """The same step under an id of its own: the maintaining query may take it at the same time."""
    return replace(
        node,
        id=f"{query}: {node.id}",
        step=replace(node.step, visibility=Visibility.EARLIER, before_batch=before_batch),
        children=tuple(_older_only(child, query, before_batch) for child in node.children),
    )
