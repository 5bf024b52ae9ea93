"""The stores that probe trees need: columns, selections, indexes and retention, each the union over queries (C5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dovetail.optimizer.draft import Draft, IntermediateUsers, count_of
from dovetail.plan.live_query import LiveQuery, store_of
from dovetail.plan.needs import required_columns, retention_of
from dovetail.plan.probe_tree import ProbeTree
from dovetail.plan.store_plan import IndexPlan, StorePlan
from dovetail.query.expression import TRUE
from dovetail.query.join_query import Relation
from dovetail.query.stream import Stream

_TRUE_TEXT = str(TRUE)


def revise(draft: Draft) -> Draft:
    forms = draft.forms
    stores = derive_stores(forms.running, draft.keyed.indexed, draft.streams, forms.users_by_store)
    return replace(draft, stores=stores)


def tell(draft: Draft) -> str:
    indexes = sum(len(store.indexes) for store in draft.stores)
    return f"{count_of(len(draft.stores), 'store')} with {count_of(indexes, 'index')}"


def derive_stores(
    queries: tuple[LiveQuery, ...],
    trees: tuple[ProbeTree, ...],
    streams: Mapping[str, Stream],
    users_by_store: Mapping[str, IntermediateUsers] | None = None,
) -> tuple[StorePlan, ...]:
    event_times = {name: stream.event_time for name, stream in streams.items()}
    uses: dict[str, list[tuple[LiveQuery, Relation]]] = {}
    for live in queries:
        for relation in live.query.relations:
            uses.setdefault(store_of(relation), []).append((live, relation))
    for store, kept in (users_by_store or {}).items():
        event_times[store] = kept.intermediate.event_time
        uses[store] = [(user, user.query.relation(user.collapsed[0].alias)) for user in kept.users]
    indexes = _indexes_by_store(trees)
    return tuple(_derive_store(store, uses[store], indexes.get(store, set()), event_times) for store in sorted(uses))


def _derive_store(
    store: str,
    uses: list[tuple[LiveQuery, Relation]],
    indexes: set[IndexPlan],
    event_times: Mapping[str, str | None],
) -> StorePlan:
    relation = uses[0][1]
    event_time = event_times[relation.stream]
    columns = frozenset(name for live, use in uses for name in required_columns(live, use, event_time))
    # By text, which is quicker to compare than what it says.
    selections = dict(live.selection_and_text(use.alias) for live, use in uses)
    return StorePlan(
        id=store,
        stream=relation.stream,
        hop_window=relation.hop_window,
        event_time=event_time,
        columns=tuple(sorted(columns)),
        selections=tuple(selections[text] for text in sorted(selections, key=lambda text: (text != _TRUE_TEXT, text))),
        indexes=tuple(sorted(indexes, key=lambda index: index.id)),
        retention=retention_of(uses),
    )


def _indexes_by_store(trees: tuple[ProbeTree, ...]) -> dict[str, set[IndexPlan]]:
    """Probed indexes, and on the start's side the same keys: new rows probe in the order of their own index."""
    indexes: dict[str, set[IndexPlan]] = {}
    for tree in trees:
        for node in tree.walk():
            indexes.setdefault(node.step.target, set()).add(node.step.index)
        for node in tree.children:
            indexes.setdefault(tree.start, set()).add(node.step.start_index)
    return indexes
