"""Aggregating queries become readers of shared aggregations, and one query for each of these joins the rows.

    q1: SELECT lang, COUNT(*) ... GROUP BY lang           one query «groups/...» joins and hands on lang and x;
    q2: SELECT lang, AVG(x)   ... GROUP BY lang           its groups keep rows, count(x), sum(x) for both

Two queries share if they join the same rows, from the same batches, and group them by the same keys and panes. What
each may read of it is told by batch, so the younger one shares, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import gcd

from dovetail.optimizer.draft import Draft, count_of
from dovetail.plan.group_plan import (
    FOLDS,
    JOINED,
    ROWS,
    WINDOW_TIME,
    Fold,
    GroupPlan,
    GroupUser,
    Pane,
    PartialColumn,
    UserWindow,
)
from dovetail.plan.live_query import LiveQuery, store_of
from dovetail.query.aggregation import Aggregate, AggregateFunction, Aggregation, key_column
from dovetail.query.closing import uppers_from
from dovetail.query.expression import TRUE, Column, Expression, rename_relations
from dovetail.query.join_kind import JoinKind
from dovetail.query.join_query import Equality, JoinQuery, OutputColumn, Relation, TimeBound


def revise(draft: Draft) -> Draft:
    queries, groups = plan_groups(draft.asked)
    return replace(draft, queries=queries, groups=groups)


def tell(draft: Draft) -> str:
    joining = f"{count_of(len(draft.asked), 'query')}, joined by {len(draft.queries)}"
    return f"{joining}; {count_of(len(draft.groups), 'aggregation')}" if draft.groups else joining


def plan_groups(queries: tuple[LiveQuery, ...]) -> tuple[tuple[LiveQuery, ...], tuple[GroupPlan, ...]]:
    """The queries that join rows, for themselves or for groups, and the groups."""
    joining: dict[str, LiveQuery] = {}
    sharing: dict[str, list[tuple[LiveQuery, _Form]]] = {}
    for live in queries:
        if live.query.aggregation is None:
            joining[live.id] = live
            continue
        form = live.derived(("groups",), lambda live=live: _form(live))  # type: ignore[misc]
        sharing.setdefault(form.id, []).append((live, form))
        joining.setdefault(form.id, live)
    groups = {name: _group_plan(name, users) for name, users in sharing.items()}
    found = (_joining_query(groups[name], sharing[name]) if name in groups else live for name, live in joining.items())
    return tuple(found), tuple(groups.values())


def joining_query(live: LiveQuery) -> LiveQuery:
    """What joins the query's rows if nobody shares them: the query itself, unless it has groups."""
    return plan_groups((live,))[0][0]


@dataclass(frozen=True)
class _Form:
    """An aggregating query with names that do not depend on who wrote it; `id` tells what it shares."""

    id: str
    query: JoinQuery
    """Without output: what is joined."""
    aggregation: Aggregation
    pane: Pane | None


def _form(live: LiveQuery) -> _Form:
    query, names = _renamed(live.query)
    groups = live.query.aggregation
    if groups is None:
        raise ValueError(f"query {live.name} has no groups")
    aggregation = replace(
        groups,
        keys=tuple(rename_relations(key, names) for key in groups.keys),
        aggregates=tuple(
            replace(each, arguments=tuple(rename_relations(argument, names) for argument in each.arguments))
            for each in groups.aggregates
        ),
        window=None
        if groups.window is None
        else replace(groups.window, time=_column(rename_relations(groups.window.time, names))),
    )
    pane = _pane(query, aggregation)
    # What is new to a group is told once, so all readers must have begun together.
    is_new_counted = pane is None and any(
        each.function is AggregateFunction.COUNT_DISTINCT for each in groups.aggregates
    )
    # Texts, for they stay the same when records gain a field: the state of groups is found by this name.
    said = [
        [(relation.stream, str(relation.hop_window), str(relation.selection)) for relation in query.relations],
        [f"{equality.a_side} = {equality.b_side}" for equality in query.equalities],
        [str(bound) for bound in query.time_bounds],
        [str(residual) for residual in query.residuals],
        f"{query.kind.value} where {query.where}",
        [f"{key}:{key.type}" for key in aggregation.keys],
        str(pane and (pane.width_us, pane.offset_us, pane.is_start)),
        str(_window_time(aggregation)),
        live.complete_from,
        live.first_batch if is_new_counted else None,
    ]
    digest = hashlib.sha256(repr(said).encode()).hexdigest()[:12]
    return _Form(f"groups/{digest}", query, aggregation, pane)


def relation_names(query: JoinQuery) -> dict[str, str]:
    """By alias r0, r1 ... in an order that FROM has no say in, unless a stream is joined with itself.

    In outer, semi and anti joins the order says which side is which.
    """

    def place(relation: Relation) -> tuple[str, str]:
        return store_of(relation), str(rename_relations(relation.selection, {relation.alias: ""}))

    relations = sorted(query.relations, key=place) if query.kind is JoinKind.INNER else list(query.relations)
    return {relation.alias: f"r{number}" for number, relation in enumerate(relations)}


def _renamed(query: JoinQuery) -> tuple[JoinQuery, dict[str, str]]:
    names = relation_names(query)
    relations = [query.relation(alias) for alias in names]
    equalities = {}
    for equality in query.equalities:
        sides = sorted((rename_relations(side, names) for side in (equality.a_side, equality.b_side)), key=str)
        equalities[str(sides)] = Equality(*sides)
    bounds = {TimeBound(names[each.earlier], names[each.later], each.upper_us) for each in query.time_bounds}
    residuals = {str(each): each for each in (rename_relations(residual, names) for residual in query.residuals)}
    renamed = JoinQuery(
        sql="",
        relations=tuple(
            replace(each, alias=names[each.alias], selection=rename_relations(each.selection, names))
            for each in relations
        ),
        equalities=tuple(equalities[text] for text in sorted(equalities)),
        output=(OutputColumn("", TRUE),),
        time_bounds=tuple(sorted(bounds, key=str)),
        residuals=tuple(residuals[text] for text in sorted(residuals)),
        kind=query.kind,
        where=rename_relations(query.where, names),
    )
    return renamed, names


def _pane(query: JoinQuery, aggregation: Aggregation) -> Pane | None:
    alias = aggregation.window_relation
    if alias is None:
        return None
    uppers = uppers_from(query, alias)
    by_stream: dict[str, int] = {}
    for other, upper_us in uppers.items():
        stream = query.relation(other).stream
        if upper_us is not None:
            by_stream[stream] = max(upper_us, by_stream.get(stream, upper_us))
    closing = None if None in uppers.values() else tuple(sorted(by_stream.items()))
    time_type = _window_time(aggregation).type
    window = aggregation.window
    if window is not None:
        width_us = gcd(window.size_us, window.slide_us)
        return Pane(width_us, window.offset_us % width_us, False, time_type, closing)
    hop_window = query.relation(alias).hop_window
    if hop_window is None:
        raise ValueError(f"{alias} has no window")
    return Pane(hop_window.size_us, 0, True, time_type, closing)


def _window_time(aggregation: Aggregation) -> Expression:
    if aggregation.window is not None:
        return aggregation.window.time
    return TRUE if aggregation.window_key is None else aggregation.keys[aggregation.window_key]


def _group_plan(name: str, users: list[tuple[LiveQuery, _Form]]) -> GroupPlan:
    form = users[0][1]
    columns: dict[str, PartialColumn] = {ROWS.name: ROWS}
    distinct: dict[str, tuple[Expression, ...]] = {}
    sketches: set[str] = set()
    for _, own in users:
        for aggregate in own.aggregation.aggregates:
            if aggregate.function is AggregateFunction.COUNT_DISTINCT:
                distinct[str(_names(aggregate))] = aggregate.arguments
            elif aggregate.function is AggregateFunction.APPROX_COUNT_DISTINCT:
                sketches.add(_names(aggregate)[0])
            else:
                columns |= {column.name: column for column in _partial_columns(aggregate)}
    return GroupPlan(
        id=name,
        key_types=tuple(key.type for key in form.aggregation.keys),
        columns=tuple(columns[text] for text in sorted(columns)),
        distinct=tuple(tuple((str(each), each.type) for each in distinct[text]) for text in sorted(distinct)),
        sketches=tuple(sorted(sketches)),
        users=tuple(_user(live, own) for live, own in users),
        pane=form.pane,
    )


def _partial_columns(aggregate: Aggregate) -> Iterable[PartialColumn]:
    if not aggregate.arguments:
        return (ROWS,)
    names = _names(aggregate)
    return (
        PartialColumn(fold, names) if fold is Fold.COUNT else PartialColumn(fold, names, aggregate.arguments[0].type)
        for fold in FOLDS[aggregate.function]
    )


def _user(live: LiveQuery, form: _Form) -> GroupUser:
    window, groups = form.aggregation.window, form.aggregation
    own = None
    if window is not None:
        own = UserWindow(window.size_us, window.slide_us, window.offset_us)
    elif form.pane is not None:
        own = UserWindow(form.pane.width_us, form.pane.width_us, None)
    return GroupUser(
        query=live.id,
        first_batch=live.first_batch,
        aggregates=tuple(
            replace(each, arguments=tuple(Column(JOINED, str(argument), argument.type) for argument in each.arguments))
            for each in groups.aggregates
        ),
        having=groups.having,
        output=live.query.output,
        is_updating=live.query.is_updating,
        window=own,
    )


def _joining_query(group: GroupPlan, users: list[tuple[LiveQuery, _Form]]) -> LiveQuery:
    """The query whose rows the groups are made of: keys, window time, and every argument that one of the users has."""
    form = users[0][1]
    output = [OutputColumn(key_column(place), key) for place, key in enumerate(form.aggregation.keys)]
    if form.pane is not None:
        output.append(OutputColumn(WINDOW_TIME, _window_time(form.aggregation)))
    arguments = {
        str(argument): argument
        for _, own in users
        for aggregate in own.aggregation.aggregates
        for argument in aggregate.arguments
    }
    output += [OutputColumn(text, arguments[text]) for text in sorted(arguments)]
    return LiveQuery(
        group.id,
        group.id,
        replace(form.query, sql=group.id, output=tuple(output) or form.query.output),
        users[0][0].complete_from,
        into=group.id,
        may_materialize=all(live.may_materialize for live, _ in users),
    )


def _names(aggregate: Aggregate) -> tuple[str, ...]:
    return tuple(map(str, aggregate.arguments))


def _column(expression: Expression) -> Column:
    if not isinstance(expression, Column):
        raise ValueError(f"{expression} is no column")
    return expression
