"""What a plan needs for outer, anti and semi joins besides pairs: the steps that tell who has a partner."""

from __future__ import annotations

from dataclasses import replace

from dovetail.optimizer.live_query import LiveQuery, store_of
from dovetail.optimizer.share_probe_prefixes import share_probe_prefixes
from dovetail.plan.lone_rows import LoneRows, MatchedRows
from dovetail.plan.probe_tree import Emit, ProbeNode, ProbeTree, member_name
from dovetail.plan.visibility import Visibility
from dovetail.query.expression import TRUE, rename_relations
from dovetail.query.join_kind import JoinKind
from dovetail.query.join_query import OutputColumn
from dovetail.stats.catalog import StatsCatalog


def plan_lone_rows(live: LiveQuery) -> tuple[LoneRows, ...]:
    """One for each relation whose lone rows the query answers."""
    return live.derived(("lone rows",), lambda: tuple(_lone_rows(live, place) for place in live.query.kind.lone_places))


def plan_matched_rows(live: LiveQuery) -> MatchedRows | None:
    """What a semi join needs; None for others."""
    return live.derived(("matched rows",), lambda: _matched_rows(live) if live.query.kind is JoinKind.SEMI else None)


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
    tree = _witnesses(live, place, Visibility.UP_TO_NOW, "lone")
    where = rename_relations(query.where, names)
    return LoneRows(live.id, tree, emit, query.relation(other).stream, upper_us, where)


def _matched_rows(live: LiveQuery) -> MatchedRows:
    left = live.query.relations[0].alias
    return MatchedRows(
        live.id,
        _witnesses(live, 0, Visibility.UP_TO_NOW, "from left"),
        _witnesses(live, 1, Visibility.EARLIER, "from right"),
        _witnesses(live, 0, Visibility.EARLIER, "again"),
        Emit(live.id, 0, _output(live, {left: member_name(0)}), live.into),
    )


def _output(live: LiveQuery, names: dict[str, str]) -> tuple[OutputColumn, ...]:
    return tuple(OutputColumn(c.name, rename_relations(c.expression, names)) for c in live.query.output)


def _witnesses(live: LiveQuery, place: int, visibility: Visibility, purpose: str) -> ProbeTree:
    """The step from one relation to the other as pairs take it, but for WHERE: that does not say who is a partner."""
    asking = replace(live, query=replace(live.query, where=TRUE))
    start = store_of(live.query.relations[place])
    (tree,) = (tree for tree in share_probe_prefixes((asking,), StatsCatalog()) if tree.start == start)
    (node,) = (node for node in tree.children if any(leg.start == place for leg in node.legs))
    legs = tuple(leg for leg in tree.legs if leg.start == place)
    return ProbeTree(start, legs, (_as_witness(node, place, visibility, f"{live.id} {purpose} {place}"),))


def _as_witness(node: ProbeNode, place: int, visibility: Visibility, name: str) -> ProbeNode:
    """The same step for one start alone, under an id of its own: pairs may take it at the same time."""
    return replace(
        node,
        id=f"{name}: {node.id}",
        step=replace(node.step, visibility=visibility),
        legs=tuple(leg for leg in node.legs if leg.start == place),
        emits=tuple(
            replace(emit, output=(), into=None, is_witness=True) for emit in node.emits if emit.start == place
        ),
    )
