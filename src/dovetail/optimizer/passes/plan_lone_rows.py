"""What a plan needs for outer, anti and semi joins besides pairs: the steps that tell who has a partner."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from dovetail.optimizer.draft import Draft, count_of
from dovetail.optimizer.passes.share_probe_prefixes import share_probe_prefixes
from dovetail.plan.live_query import LiveQuery, store_of
from dovetail.plan.lone_rows import LoneAnswer, LoneRows, MatchedRows, only_node
from dovetail.plan.probe_tree import Emit, ProbeTree, member_name
from dovetail.plan.visibility import Visibility
from dovetail.query.expression import TRUE, rename_relations
from dovetail.query.join_kind import JoinKind
from dovetail.query.join_query import OutputColumn
from dovetail.stats.catalog import StatsCatalog


def revise(draft: Draft) -> Draft:
    lone, matched = plan_lone_rows(draft.forms.running), plan_matched_rows(draft.forms.running)
    return replace(draft, lone_rows=lone, matched_rows=matched)


def tell(draft: Draft) -> str:
    steps = len(draft.lone_rows) + len(draft.matched_rows)
    return f"{count_of(steps, 'step')} tell who has a partner" if steps else "nobody asks who has a partner"


def plan_lone_rows(queries: Iterable[LiveQuery]) -> tuple[LoneRows, ...]:
    """One for all queries that take the same step to the same partners, decided at the same time."""
    alike: dict[tuple[str, str, int], list[LoneRows]] = {}
    for live in queries:
        for lone in live.derived(("lone rows",), partial(_lone_rows_of, live)):
            alike.setdefault((only_node(lone.tree).id, lone.partner_stream, lone.upper_us), []).append(lone)
    return tuple(
        replace(
            lone[0],
            tree=_merged([each.tree for each in lone], f", once {stream} is {upper_us}us later"),
            answers=tuple(answer for each in lone for answer in each.answers),
        )
        for (_, stream, upper_us), lone in alike.items()
    )


def plan_matched_rows(queries: Iterable[LiveQuery]) -> tuple[MatchedRows, ...]:
    """One for all semi joins that take the same steps."""
    alike: dict[tuple[str, ...], list[MatchedRows]] = {}
    for live in queries:
        if live.query.kind is JoinKind.SEMI:
            matched = live.derived(("matched rows",), partial(_matched_rows_of, live))
            alike.setdefault(tuple(only_node(tree).id for tree in matched.trees), []).append(matched)
    return tuple(
        MatchedRows(
            _merged([each.from_left for each in matched]),
            _merged([each.from_right for each in matched]),
            _merged([each.again for each in matched]),
            tuple(emit for each in matched for emit in each.emits),
        )
        for matched in alike.values()
    )


def _merged(trees: Sequence[ProbeTree], suffix: str = "") -> ProbeTree:
    nodes = [only_node(tree) for tree in trees]
    node = replace(
        nodes[0],
        id=f"{nodes[0].id}{suffix}",
        legs=tuple(leg for each in nodes for leg in each.legs),
        emits=tuple(emit for each in nodes for emit in each.emits),
    )
    return ProbeTree(trees[0].start, tuple(leg for tree in trees for leg in tree.legs), (node,))


def _lone_rows_of(live: LiveQuery) -> tuple[LoneRows, ...]:
    return tuple(_lone_rows(live, place) for place in live.query.kind.lone_places)


def _lone_rows(live: LiveQuery, place: int) -> LoneRows:
    query = live.query
    alias = query.relations[place].alias
    other = query.partner_of(alias)
    upper_us = query.upper_us(alias, other)
    if upper_us is None:
        raise ValueError(f"rows of {alias} are never decided")
    names = {alias: member_name(0), other: member_name(1)}
    # Pairs have the numbers of their starts, so lone rows come after those.
    emit = Emit(live.id, len(query.relations) + place, _output(live, names), live.into)
    answer = LoneAnswer(emit, rename_relations(query.where, names))
    tree = _witnesses(live, place, Visibility.UP_TO_NOW, "lone")
    return LoneRows(tree, (answer,), query.relation(other).stream, upper_us)


def _matched_rows_of(live: LiveQuery) -> MatchedRows:
    left = live.query.relations[0].alias
    return MatchedRows(
        _witnesses(live, 0, Visibility.UP_TO_NOW, "left"),
        _witnesses(live, 1, Visibility.EARLIER, "right"),
        _witnesses(live, 0, Visibility.EARLIER, "again"),
        (Emit(live.id, 0, _output(live, {left: member_name(0)}), live.into),),
    )


def _output(live: LiveQuery, names: dict[str, str]) -> tuple[OutputColumn, ...]:
    return tuple(OutputColumn(c.name, rename_relations(c.expression, names)) for c in live.query.output)


def _witnesses(live: LiveQuery, place: int, visibility: Visibility, purpose: str) -> ProbeTree:
    """The step from one relation to the other as pairs take it, but for WHERE: that does not say who is a partner."""
    asking = replace(live, query=replace(live.query, where=TRUE))
    start = store_of(live.query.relations[place])
    (tree,) = (tree for tree in share_probe_prefixes((asking,), StatsCatalog()) if tree.start == start)
    (node,) = (node for node in tree.children if any(leg.start == place for leg in node.legs))
    step = replace(node.step, visibility=visibility)
    # Named by content, and apart from pairs, which may take the step at the same time.
    witness = replace(
        node,
        id=f"{purpose}: {start} > {step}",
        step=step,
        legs=tuple(leg for leg in node.legs if leg.start == place),
        emits=tuple(replace(emit, output=(), into=None, is_witness=True) for emit in node.emits if emit.start == place),
    )
    return ProbeTree(start, tuple(leg for leg in tree.legs if leg.start == place), (witness,))
