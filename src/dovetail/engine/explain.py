"""EXPLAIN: the shared plan, and one query's path through it."""

from __future__ import annotations

from dovetail.core.text_tree import TextTree
from dovetail.engine.engine import Engine
from dovetail.engine.explain_statistics import StatisticsText
from dovetail.plan.probe_tree import ProbeNode, ProbeTree
from dovetail.plan.shared_plan import store_tree


def explain_plan(engine: Engine) -> str:
    plan, queries = engine.plan()
    figures = StatisticsText(plan, engine.streams, engine.statistics)
    return str(figures.annotated(plan.text_tree({live.id: live.name for live in queries})))


def explain_query(engine: Engine, query_id: str) -> str:
    record = engine.record(query_id)
    plan, queries = engine.plan()
    name_by_query = {live.id: live.name for live in queries}
    head = f"query {record.name}: {record.state.value}"
    if record.error:
        head += f" ({record.error})"
    if query_id not in name_by_query:
        return str(TextTree(head, (TextTree(f"sql: {record.sql}"),)))
    figures = StatisticsText(plan, engine.streams, engine.statistics)
    paths = [
        _path_tree(tree, child, query_id, name_by_query, figures)
        for tree in plan.trees
        for child in tree.children
        if query_id in {leg.query for leg in child.legs}
    ]
    children = (
        TextTree(f"sql: {record.sql}"),
        TextTree("stores", tuple(_stores_of(query_id, name_by_query, figures))),
        TextTree("probes", tuple(paths)),
    )
    return str(TextTree(head, children))


def _stores_of(query_id: str, name_by_query: dict[str, str], figures: StatisticsText) -> list[TextTree]:
    trees = []
    for tree in figures.plan.trees:
        users = {leg.query for leg in tree.legs}
        if query_id in users:
            shared = _shared_with(users, query_id, name_by_query)
            store = figures.plan.store(tree.start)
            shown = TextTree(f"{store_tree(store).line}; {shared}", store_tree(store).children)
            selections = dict.fromkeys(leg.selection for leg in tree.legs if leg.query == query_id)
            trees.append(figures.with_store_figures(shown, store, selections))
    return trees


def _path_tree(
    tree: ProbeTree, node: ProbeNode, query_id: str, name_by_query: dict[str, str], figures: StatisticsText
) -> TextTree:
    return TextTree(f"new {tree.start}", (_step_tree(node, (tree.start,), query_id, name_by_query, figures),))


def _step_tree(
    node: ProbeNode, path: tuple[str, ...], query_id: str, name_by_query: dict[str, str], figures: StatisticsText
) -> TextTree:
    shared = _shared_with({leg.query for leg in node.legs}, query_id, name_by_query)
    below = [
        _step_tree(child, (*path, node.step.target), query_id, name_by_query, figures)
        for child in node.children
        if query_id in {leg.query for leg in child.legs}
    ]
    if query_id in {emit.query for emit in node.emits}:
        below.append(TextTree("emit"))
    return TextTree(f"m{node.member} = {node.step}; {shared}{figures.step_text(node, path)}", tuple(below))


def _shared_with(users: set[str], query_id: str, name_by_query: dict[str, str]) -> str:
    others = sorted(name_by_query.get(user, user) for user in users - {query_id})
    if not others:
        return "not shared"
    shown = ", ".join(others[:6]) + (f" and {len(others) - 6} more" if len(others) > 6 else "")
    return f"shared with {shown}"
