"""A bound SELECT to a `JoinQuery`: each conjunct becomes a selection, an equality, a time bound or a residual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import TypeVar

from sqlglot import exp

from dovetail.core.errors import CrossProduct, QueryError, SqlError, UnsupportedSql
from dovetail.frontend.bind.names import BoundRelation, Scope
from dovetail.frontend.outer_joins import JoinForm, check_decided
from dovetail.frontend.parse.source_text import SourceText
from dovetail.frontend.time_bounds import slack_us, time_bounds_of
from dovetail.query.aggregation import Aggregation
from dovetail.query.durations import LONGEST_US
from dovetail.query.expression import TRUE, Call, Column, Expression, all_of, conjuncts_of, relations_of
from dovetail.query.join_kind import JoinKind
from dovetail.query.join_query import (
    MAX_RELATIONS,
    WINDOW_START,
    Equality,
    JoinQuery,
    OutputColumn,
    Relation,
    TimeBound,
)

_T = TypeVar("_T")


@dataclass
class _Conditions:
    """The conjuncts of a query, sorted by kind; each kind in the order of the text, without repetitions."""

    selections_by_alias: dict[str, list[Expression]]
    equalities: list[Equality] = field(default_factory=list)
    time_bounds: list[TimeBound] = field(default_factory=list)
    residuals: list[Expression] = field(default_factory=list)


def to_join_query(
    scope: Scope,
    conditions: Sequence[Expression],
    output: Sequence[OutputColumn],
    aggregation: Aggregation | None = None,
    *,
    within_us: int | None,
    timezone: str,
    form: JoinForm,
) -> JoinQuery:
    source = scope.source
    event_time_by_alias = {relation.alias: _event_time(relation) for relation in scope.relations}
    sorted_conditions = _Conditions({r.alias: list(conjuncts_of(r.selection)) for r in scope.relations})
    aliases = list(sorted_conditions.selections_by_alias)
    for condition in conditions if form.kind is not JoinKind.INNER else (*conditions, *form.where):
        if form.is_about_partners(condition, aliases):
            sorted_conditions.residuals.append(condition)
            continue
        _sort_condition(condition, event_time_by_alias, sorted_conditions, slack_us(condition, timezone))
    selected = form.selected(aliases)
    if selected is not None:
        sorted_conditions.selections_by_alias[selected[0]] += selected[1]
    bounds = [
        *sorted_conditions.time_bounds,
        *_window_bounds(scope.relations, sorted_conditions.equalities, event_time_by_alias),
        *_within_bounds(scope.relations, within_us, source),
    ]
    check_decided(form, event_time_by_alias, bounds)
    relations = tuple(
        Relation(
            relation.alias,
            relation.stream.name,
            all_of(tuple(_unique(sorted_conditions.selections_by_alias[relation.alias]))),
            relation.hop_window,
        )
        for relation in scope.relations
    )
    try:
        return JoinQuery(
            sql=source.text,
            relations=relations,
            equalities=tuple(_unique(sorted_conditions.equalities)),
            output=tuple(output),
            time_bounds=_tightest(bounds),
            residuals=tuple(_unique(sorted_conditions.residuals)),
            kind=form.kind,
            where=form.answered_where(aliases),
            aggregation=aggregation,
        )
    except CrossProduct as error:
        raise CrossProduct(error.what, where=source.where(0), hint=error.hint) from None
    except QueryError as error:
        raise SqlError(error.what, where=form.place, hint=error.hint) from None


def check_relation_count(count: int, node: exp.Expr, source: SourceText) -> None:
    if count < 1:
        hint = "read a stream: FROM a, or join two: FROM a JOIN b ON a.key = b.key"
        raise UnsupportedSql("a query without FROM is not supported", where=source.where(node), hint=hint)
    if count > MAX_RELATIONS:
        hint = f"join at most {MAX_RELATIONS} relations in one query"
        raise UnsupportedSql(f"a join of {count} relations is not supported", where=source.where(node), hint=hint)


def _event_time(relation: BoundRelation) -> Column | None:
    name = relation.stream.event_time
    sql_type = relation.stream.type_of(name) if name is not None else None
    return Column(relation.alias, name, sql_type) if name is not None and sql_type is not None else None


def _sort_condition(
    condition: Expression,
    event_time_by_alias: dict[str, Column | None],
    result: _Conditions,
    slack: int,
) -> None:
    if condition == TRUE:
        return
    aliases = relations_of(condition)
    if not aliases:
        # A constant condition holds for all rows or for none: the first relation's selection says so.
        result.selections_by_alias[next(iter(result.selections_by_alias))].append(condition)
    elif len(aliases) == 1:
        result.selections_by_alias[next(iter(aliases))].append(condition)
    else:
        bounds = time_bounds_of(condition, event_time_by_alias)
        # Where clocks are changed the bound may only say when state can go, and the condition decides.
        bounds = tuple(replace(bound, upper_us=bound.upper_us + slack) for bound in bounds)
        result.time_bounds.extend(bounds)
        if _is_equality(condition):
            assert isinstance(condition, Call)
            result.equalities.append(Equality(*condition.args))
        elif not bounds or slack:
            result.residuals.append(condition)


def _is_equality(condition: Expression) -> bool:
    if not isinstance(condition, Call) or condition.function != "eq":
        return False
    sides = [relations_of(side) for side in condition.args]
    return all(len(side) == 1 for side in sides) and sides[0] != sides[1]


def _window_bounds(
    relations: Sequence[BoundRelation],
    equalities: Sequence[Equality],
    event_time_by_alias: dict[str, Column | None],
) -> list[TimeBound]:
    """Rows of one window are less than its size apart; said aloud, so that their state can expire."""
    size_by_alias: dict[str, int] = {}
    for relation in relations:
        event_time, window = event_time_by_alias[relation.alias], relation.hop_window
        if window is not None and event_time is not None and event_time.name == window.time_column:
            size_by_alias[relation.alias] = window.size_us
    bounds = []
    for equality in equalities:
        sides = (equality.a_side, equality.b_side)
        on_windows = all(isinstance(side, Column) and side.name == WINDOW_START for side in sides)
        aliases = sorted(equality.aliases)
        if on_windows and all(alias in size_by_alias for alias in aliases):
            # Windows of two sizes can share a start; their rows are then within the larger one.
            upper = max(size_by_alias[alias] for alias in aliases) - 1
            bounds += [TimeBound(a, b, upper) for a, b in permutations(aliases, 2)]
    return bounds


def _within_bounds(relations: Sequence[BoundRelation], within_us: int | None, source: SourceText) -> list[TimeBound]:
    is_used = within_us is not None or any(relation.within_us is not None for relation in relations)
    for relation in relations:
        if is_used and relation.stream.event_time is None:
            what = f"WITHIN needs an event time, and stream {relation.stream.name!r} has none"
            hint = f"declare it: create_stream({relation.stream.name!r}, df, event_time='column')"
            raise UnsupportedSql(what, where=source.where(0), hint=hint)
    bounds = []
    for first, second in permutations(relations, 2):
        if first.within_us is not None:
            bounds.append(TimeBound(first.alias, second.alias, first.within_us))
        if within_us is not None:
            bounds.append(TimeBound(first.alias, second.alias, within_us))
    return bounds


def _tightest(bounds: Sequence[TimeBound]) -> tuple[TimeBound, ...]:
    """One bound per ordered pair: the smallest says all that the others say.

    No two rows are further apart than all of time, so what is beyond it says the same as what is at its end.
    """
    upper_by_pair: dict[tuple[str, str], int] = {}
    for bound in bounds:
        pair = (bound.earlier, bound.later)
        upper_us = max(-LONGEST_US, min(bound.upper_us, LONGEST_US))
        upper_by_pair[pair] = min(upper_us, upper_by_pair.get(pair, upper_us))
    return tuple(TimeBound(earlier, later, upper) for (earlier, later), upper in upper_by_pair.items())


def _unique(items: Sequence[_T]) -> list[_T]:
    return list(dict.fromkeys(items))
