"""Probe orders of different queries that begin with the same steps become one path that forks later.

    Q1: a -> b on x             new a --- b[x] --+-- emit Q1
    Q2: a -> b on x -> c on y                    +-- c[y] -- emit Q2

Two steps are the same when target, index, probe keys and visibility are. Windows, ranges, selections and residual
predicates stay with each query's leg: the runtime matches under the loosest and checks each leg's own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Set
from dataclasses import dataclass, field, replace

from dovetail.optimizer.draft import Draft, count_of
from dovetail.optimizer.orders import Forms, Orders
from dovetail.optimizer.passes.choose_probe_orders import choose_probe_order, edges_between
from dovetail.optimizer.passes.choose_search import StepSearch, choose_search
from dovetail.plan.live_query import LiveQuery, as_row, store_of
from dovetail.plan.probe_tree import Emit, Leg, MemberBound, ProbeNode, ProbeStep, ProbeTree, member_name
from dovetail.plan.store_plan import ROW, IndexPlan
from dovetail.plan.visibility import visibility
from dovetail.query.expression import Column, Expression, conjuncts_of, relations_of, rename_relations, transform
from dovetail.query.join_query import OutputColumn
from dovetail.stats.catalog import StatsCatalog


@dataclass
class _Trie:
    """The tree while it grows; insertion order is query order, so plans are deterministic."""

    step: ProbeStep | None = None
    legs: list[Leg] = field(default_factory=list)
    emits: list[Emit] = field(default_factory=list)
    children: dict[str, _Trie] = field(default_factory=dict)
    """By the text of their step, which names it as its content does and is quicker to compare."""


def revise(draft: Draft) -> Draft:
    """Stores are indexed for what will probe them, too: an index is cheap on arrival and dear afterwards."""
    forms = draft.forms
    trees = share_probe_prefixes(forms.pairing, draft.stats, forms.collapsed, draft.orders)
    later: tuple[ProbeTree, ...] = ()
    if forms.later_collapsed:
        later = share_probe_prefixes(forms.pairing, draft.stats, forms.later_collapsed, draft.decisions.orders)
    return replace(draft, trees=trees, later_trees=later)


def tell(draft: Draft) -> str:
    nodes = [node for tree in draft.trees for node in tree.walk()]
    legs = sum(len(node.legs) for node in nodes)
    return f"{count_of(len(draft.trees), 'tree')} of {count_of(len(nodes), 'step')}, taken for {legs} of queries"


def share_probe_prefixes(
    queries: tuple[LiveQuery, ...], stats: StatsCatalog, forms: Forms | None = None, orders: Orders | None = None
) -> tuple[ProbeTree, ...]:
    """One tree per store whose new rows start a probe; `orders` say how, where somebody decided."""
    roots, _ = _grow(queries, stats, forms or {}, orders or {})
    return tuple(
        ProbeTree(
            store,
            tuple(root.legs),
            tuple(_frozen(child, text, store, 1) for text, child in root.children.items()),
            tuple(root.emits),
        )
        for store, root in sorted(roots.items())
    )


def taken_orders(
    queries: tuple[LiveQuery, ...], stats: StatsCatalog, forms: Forms | None = None, orders: Orders | None = None
) -> Orders:
    """The orders by which the trees for the same arguments grow: where nobody decided, the greedy ones.

    These look for steps that others take: only then is there something to grow, and only what they start from.
    """
    forms, orders = forms or {}, orders or {}
    decided: dict[tuple[str, str], tuple[str, ...] | None] = {}
    undecided: set[str] = set()
    for live in queries:
        for relation in live.query.relations:
            key = (live.id, relation.alias)
            decided[key] = _in_form(orders.get(key), forms.get(key, live))
            if decided[key] is None:
                undecided.add(store_of(relation))
    greedy = _grow(queries, stats, forms, orders, undecided)[1] if undecided else {}
    return {key: order or greedy[key] for key, order in decided.items()}


def greedy_orders(queries: tuple[LiveQuery, ...], stats: StatsCatalog) -> Orders:
    """The orders that are taken where nobody decided."""
    return taken_orders(queries, stats)


def _grow(
    queries: tuple[LiveQuery, ...], stats: StatsCatalog, forms: Forms, orders: Orders, stores: Set[str] | None = None
) -> tuple[dict[str, _Trie], Orders]:
    """By store from which they start; `stores` are those that somebody asks for, if not all."""
    roots: dict[str, _Trie] = {}
    taken = {}
    for live in queries:
        for start, relation in enumerate(live.query.relations):
            if stores is not None and store_of(relation) not in stores:
                continue
            root = roots.setdefault(store_of(relation), _Trie())
            key = (live.id, relation.alias)
            form = forms.get(key, live)
            order = _in_form(orders.get(key), form) or _greedy_order(root, form, relation.alias, stats)
            taken[key] = order
            _insert(root, form, order, start)
    return roots, taken


def _in_form(order: tuple[str, ...] | None, form: LiveQuery) -> tuple[str, ...] | None:
    """The order with each intermediate in place of its members; None if they do not follow one another."""
    if order is None:
        return None
    kept_by_member = {member: kept.alias for kept in form.collapsed for member in kept.members}
    form_order: list[str] = []
    for alias in (kept_by_member.get(alias, alias) for alias in order):
        if form_order[-1:] != [alias]:
            form_order.append(alias)
    return tuple(form_order) if len(set(form_order)) == len(form_order) else None


def _greedy_order(root: _Trie, live: LiveQuery, start: str, stats: StatsCatalog) -> tuple[str, ...]:
    def is_shared(joined: tuple[str, ...], alias: str) -> bool:
        trie: _Trie | None = root
        for length in range(1, len(joined) + 1):
            following = joined[length] if length < len(joined) else alias
            trie = trie.children.get(_step(live, joined[:length], following)[0]) if trie else None
        return trie is not None

    return choose_probe_order(live, start, stats, is_shared).aliases


def _insert(root: _Trie, live: LiveQuery, order: tuple[str, ...], start_number: int) -> None:
    path = live.derived(("path", order, start_number), lambda: _path(live, order, start_number))
    trie = root
    trie.legs.append(path.legs[0])
    for (text, step), leg in zip(path.steps, path.legs[1:], strict=True):
        if text not in trie.children:
            trie.children[text] = _Trie(step)
        trie = trie.children[text]
        trie.legs.append(leg)
    trie.emits.append(path.emit)


@dataclass(frozen=True)
class _Path:
    """One start of a query in the order it takes: its steps with their texts, its leg at the start and at each."""

    steps: tuple[tuple[str, ProbeStep], ...]
    legs: tuple[Leg, ...]
    emit: Emit


def _path(live: LiveQuery, order: tuple[str, ...], start_number: int) -> _Path:
    names = {alias: member_name(position) for position, alias in enumerate(order)}
    output = tuple(OutputColumn(c.name, rename_relations(c.expression, names)) for c in live.query.output)
    return _Path(
        tuple(_step(live, order[:position], order[position]) for position in range(1, len(order))),
        tuple(_leg(live, order, position, start_number) for position in range(len(order))),
        Emit(live.id, start_number, output, live.into),
    )


def _step(live: LiveQuery, joined: tuple[str, ...], alias: str) -> tuple[str, ProbeStep]:
    """The step and its text."""

    def make() -> tuple[str, ProbeStep]:
        step = _make_step(live, joined, alias)
        return str(step), step

    return live.derived(("step", joined, alias), make)


def _make_step(live: LiveQuery, joined: tuple[str, ...], alias: str) -> ProbeStep:
    names = {name: member_name(position) for position, name in enumerate(joined)}
    key_pairs: dict[str, tuple[Expression, Expression]] = {}
    for equality in edges_between(live.query, list(joined), alias):
        stored = as_row(equality.side_of(alias), alias)
        (other,) = equality.aliases - {alias}
        probe = rename_relations(equality.side_of(other), names)
        key_pairs[f"{stored} {probe}"] = (stored, probe)
    pairs = [key_pairs[text] for text in sorted(key_pairs)]
    ranks = live.rank_by_alias
    return ProbeStep(
        target=store_of(live.query.relation(alias)),
        index=IndexPlan(tuple(stored for stored, _ in pairs), _search(live, joined, alias).order),
        probe_keys=tuple(probe for _, probe in pairs),
        visibility=visibility(ranks[joined[0]], ranks[alias]),
    )


def _search(live: LiveQuery, joined: tuple[str, ...], alias: str) -> StepSearch:
    """How rows of `alias` are found beside their keys, and what is asked of those that were found."""

    def make() -> StepSearch:
        names = {name: member_name(position) for position, name in enumerate(joined)} | {alias: ROW}
        members = {*joined, alias}
        residuals = [
            rename_relations(residual, names)
            for residual in live.query.residuals
            if alias in relations_of(residual) and relations_of(residual) <= members and len(relations_of(residual)) > 1
        ]
        return choose_search(
            residuals,
            has_keys=bool(edges_between(live.query, list(joined), alias)),
            is_timed=any(alias in pair and set(pair) <= members for pair in live.time_closure),
        )

    return live.derived(("search", joined, alias), make)


def _leg(live: LiveQuery, order: tuple[str, ...], position: int, start_number: int) -> Leg:
    """What becomes decidable when the member at `position` joins."""
    alias, joined = order[position], order[:position]
    bounds = []
    for place, other in enumerate(joined):
        for earlier, later, places in ((other, alias, (place, position)), (alias, other, (position, place))):
            upper_us = live.time_closure.get((earlier, later))
            if upper_us is not None:
                bounds.append(MemberBound(*places, upper_us))
    search = _search(live, joined, alias)
    return Leg(
        live.id,
        start_number,
        live.selection_and_text(alias)[1],
        tuple(bounds),
        (
            *(transform(residual, lambda column: _of_member(column, position)) for residual in search.residuals),
            *(_asked_of_pairs(live, order) if position == 1 else ()),
        ),
        search.ranges,
    )


def _asked_of_pairs(live: LiveQuery, order: tuple[str, ...]) -> Iterator[Expression]:
    """Conditions of joins of two that say nothing of how the pair is found: on one side alone, and those of WHERE."""
    names = {name: member_name(place) for place, name in enumerate(order)}
    one_sided = (residual for residual in live.query.residuals if len(relations_of(residual)) < 2)
    return (rename_relations(each, names) for each in (*one_sided, *conjuncts_of(live.query.where)))


def _of_member(column: Column, position: int) -> Column:
    return replace(column, relation=member_name(position)) if column.relation == ROW else column


def _frozen(trie: _Trie, text: str, path: str, member: int) -> ProbeNode:
    step = trie.step
    if step is None:
        raise ValueError("only the root of a tree has no step")
    path = f"{path} > {text}"
    children = tuple(_frozen(child, below, path, member + 1) for below, child in trie.children.items())
    digest = hashlib.sha256(path.encode()).hexdigest()[:10]
    return ProbeNode(f"{step.target}#{digest}", member, step, tuple(trie.legs), tuple(trie.emits), children)
