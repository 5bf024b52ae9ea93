"""The query whose rows are an intermediate's: a join of its members, with all that some user may want of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dovetail.optimizer.intermediates.collapse import StandIn, collapse
from dovetail.optimizer.intermediates.kept import KeptIntermediate, maintained_by, member_alias
from dovetail.plan.intermediate import Intermediate, member_column
from dovetail.plan.live_query import LiveQuery
from dovetail.query.expression import TRUE, Call, Column, Expression, columns_of, transform, walk
from dovetail.query.join_query import Equality, JoinQuery, OutputColumn, Relation, TimeBound
from dovetail.query.stream import Stream
from dovetail.query.types import BOOLEAN

_SAFE_FUNCTIONS = frozenset({"and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "is_null", "in"})


def maintaining_query(
    kept: KeptIntermediate, queries: Mapping[str, LiveQuery], streams: Mapping[str, Stream]
) -> LiveQuery:
    """The query whose rows are the store's: all that some user may want, with every column that one names."""
    intermediate = kept.intermediate
    users = [(queries[use.query], use.aliases) for use in kept.uses]
    columns: set[str] = set()
    for live, aliases in users:
        columns |= _columns_asked(collapse(live, [StandIn(aliases, intermediate)], streams))
    columns |= {side for equality in intermediate.equalities for side in equality}
    columns |= {member_column(m, name) for m, name in enumerate(intermediate.event_times) if name is not None}
    column_by_name = {name: _source_column(name, intermediate, streams) for name in sorted(columns)}
    relations = tuple(
        Relation(
            member_alias(member), stream, _any_selection([(live, aliases[member]) for live, aliases in users], member)
        )
        for member, stream in enumerate(intermediate.streams)
    )
    return LiveQuery(
        maintained_by(intermediate),
        intermediate.id,
        JoinQuery(
            sql=intermediate.id,
            relations=relations,
            equalities=tuple(Equality(column_by_name[a], column_by_name[b]) for a, b in intermediate.equalities),
            output=tuple(OutputColumn(name, column) for name, column in column_by_name.items()),
            time_bounds=tuple(
                TimeBound(member_alias(earlier), member_alias(later), upper_us)
                for earlier, later, upper_us in intermediate.bounds
            ),
        ),
        kept.complete_from,
        into=intermediate.id,
        rank_order=users[0][0].rank_order,
    )


def _columns_asked(user: LiveQuery) -> set[str]:
    query, alias = user.query, user.collapsed[0].alias
    expressions = [*query.residuals, *(column.expression for column in query.output)]
    expressions += [side for equality in query.equalities for side in (equality.a_side, equality.b_side)]
    expressions.append(query.relation(alias).selection)
    return {c.name for expression in expressions for c in columns_of(expression) if c.relation == alias}


def _source_column(name: str, intermediate: Intermediate, streams: Mapping[str, Stream]) -> Column:
    member_text, _, column = name.partition(".")
    member = int(member_text)
    kind = streams[intermediate.streams[member]].type_of(column)
    if kind is None:
        raise ValueError(f"stream {intermediate.streams[member]} has no column {column}")
    return Column(member_alias(member), column, kind)


def _any_selection(asked: Sequence[tuple[LiveQuery, str]], member: int) -> Expression:
    """What one of the users wants of a member. One that could fail on some row must not take the others with it."""
    selections: dict[str, Expression] = {}
    for live, alias in asked:
        selection = live.query.relation(alias).selection
        if selection == TRUE or not _cannot_fail(selection):
            return TRUE
        said = transform(selection, lambda column: Column(member_alias(member), column.name, column.type))
        selections[str(said)] = said
    texts = sorted(selections)
    result = selections[texts[0]]
    for text in texts[1:]:
        result = Call("or", (result, selections[text]), BOOLEAN)
    return result


def _cannot_fail(expression: Expression) -> bool:
    return all(not isinstance(part, Call) or part.function in _SAFE_FUNCTIONS for part in walk(expression))
