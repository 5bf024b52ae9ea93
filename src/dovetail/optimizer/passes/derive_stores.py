"""The stores that probe trees need: columns, selections, indexes and retention, each the union over queries (C5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from dovetail.plan.intermediate import Intermediate
from dovetail.plan.live_query import LiveQuery, store_of
from dovetail.plan.probe_tree import ProbeTree
from dovetail.plan.store_plan import IndexPlan, Retention, StorePlan
from dovetail.query.expression import TRUE, Expression, columns_of
from dovetail.query.join_kind import JoinKind
from dovetail.query.join_query import PRESENT, Relation
from dovetail.query.stream import Stream

_TRUE_TEXT = str(TRUE)


def derive_stores(
    queries: tuple[LiveQuery, ...],
    trees: tuple[ProbeTree, ...],
    streams: Mapping[str, Stream],
    folds_by_store: Mapping[str, IntermediateFolds] | None = None,
) -> tuple[StorePlan, ...]:
    event_times = {name: stream.event_time for name, stream in streams.items()}
    uses: dict[str, list[tuple[LiveQuery, Relation]]] = {}
    for live in queries:
        for relation in live.query.relations:
            uses.setdefault(store_of(relation), []).append((live, relation))
    for store, kept in (folds_by_store or {}).items():
        event_times[store] = kept.intermediate.event_time
        uses[store] = [(folded, folded.query.relation(folded.folded[0].alias)) for folded in kept.folds]
    indexes = _indexes_by_store(trees)
    return tuple(_derive_store(store, uses[store], indexes.get(store, set()), event_times) for store in sorted(uses))


@dataclass(frozen=True)
class IntermediateFolds:
    """A join that is kept, and its users with its members (and no others) folded into one relation."""

    intermediate: Intermediate
    folds: tuple[LiveQuery, ...]


def required_columns(live: LiveQuery, relation: Relation, event_time: str | None) -> frozenset[str]:
    """What a stored row must still have when the query probes it; its selection was decided on arrival."""
    return live.derived(("columns", relation.alias, event_time), lambda: _columns(live, relation, event_time))


def _columns(live: LiveQuery, relation: Relation, event_time: str | None) -> frozenset[str]:
    query = live.query
    expressions: list[Expression] = [*query.joined_expressions, *query.residuals, query.where]
    expressions += [side for equality in query.equalities for side in (equality.a_side, equality.b_side)]
    names = {c.name for expression in expressions for c in columns_of(expression) if c.relation == relation.alias}
    if event_time is not None:
        names.add(event_time)
    return frozenset(names - {PRESENT})


def retention_of(uses: Iterable[tuple[LiveQuery, Relation]]) -> Retention:
    """How long a row can find partners: the longest over the queries, per stream that could bring one."""
    keep_us: dict[str, int] = {}
    for live, relation in uses:
        for stream, upper_us in live.derived(("partners", relation.alias), partial(_partners, live, relation)):
            if upper_us is None:
                return Retention(None)
            keep_us[stream] = max(upper_us, keep_us.get(stream, upper_us))
    return Retention(tuple(sorted(keep_us.items())))


def _partners(live: LiveQuery, relation: Relation) -> tuple[tuple[str, int | None], ...]:
    """The streams of the other relations, and how much later than a row of this one their rows may be."""
    partners = tuple(
        (other.stream, live.time_closure.get((relation.alias, other.alias)))
        for other in live.query.relations
        if other.alias != relation.alias
    )
    return (*partners, *_asked_again(live, relation))


def _asked_again(live: LiveQuery, relation: Relation) -> tuple[tuple[str, int | None], ...]:
    """How long a row must stay because rows of the other relation are asked for their partners more than once.

    Rows of `relation` (event time s) are at most U later than their partners (event time t), and these at most V later
    than them: t - V <= s <= t + U. Whoever asks again has t + U at or above the watermark of s's own stream: else no
    new partner would make a semi join ask, and an outer or anti join would have decided the row. So s + U + V, which
    is at least t + U, is at or above that watermark, too: the row may go once it is below.
    """
    query = live.query
    asking = query.lone_aliases if query.kind is not JoinKind.SEMI else (query.relations[0].alias,)
    if not any(alias != relation.alias for alias in asking):
        return ()
    other = query.partner_of(relation.alias)
    upper_us, back_us = query.upper_us(other, relation.alias), query.upper_us(relation.alias, other)
    return ((relation.stream, None if upper_us is None or back_us is None else upper_us + back_us),)


def growing_streams(live: LiveQuery) -> list[str]:
    """The streams whose rows this query needs for ever."""
    uses = [(live, relation) for relation in live.query.relations]
    return sorted({relation.stream for use in uses for relation in use[1:] if not retention_of([use]).is_bounded})


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
