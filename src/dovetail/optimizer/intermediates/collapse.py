"""A query with the members of an intermediate collapsed into one relation.

    q: a.x = b.y AND b.z = c.z          kept: (a * b)[0.x=1.y]
    collapsed for c   c JOIN (a * b) ON c.z = "1.z": one probe instead of two

A start may take this form only if all members rank below it: then it sees earlier batches of them only, and these the
store holds before the batch begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dovetail.plan.intermediate import Intermediate, member_column
from dovetail.plan.live_query import Collapsed, LiveQuery
from dovetail.query.expression import TRUE, Call, Column, Expression, Literal, all_of, relations_of, transform
from dovetail.query.join_query import Equality, JoinQuery, OutputColumn, Relation, TimeBound
from dovetail.query.stream import Stream
from dovetail.query.types import BOOLEAN, INTERVAL


@dataclass(frozen=True)
class StandIn:
    """An intermediate, and the relations of a query that it stands for, in the order of its members."""

    aliases: tuple[str, ...]
    intermediate: Intermediate


def collapsed_alias(place: int) -> str:
    """The alias of a query's intermediate number `place`; no plain SQL name has a space."""
    return f"kept {place}"


def collapse(live: LiveQuery, stand_ins: Sequence[StandIn], streams: Mapping[str, Stream]) -> LiveQuery:
    """The same query with each intermediate as one relation. What an intermediate does not ask of its rows, the query
    does.
    """
    query, names = live.query, _Names(stand_ins)
    asked = _asked(live, names, streams)
    relations = (
        *(relation for relation in query.relations if relation.alias == names.alias(relation.alias)),
        *(
            Relation(collapsed_alias(place), each.intermediate.id, names.all_of(asked.selections[place]))
            for place, each in enumerate(stand_ins)
        ),
    )
    return replace(
        live,
        query=JoinQuery(
            sql=query.sql,
            relations=relations,
            equalities=tuple(
                Equality(names.renamed(equality.a_side), names.renamed(equality.b_side))
                for equality in query.equalities
                if names.place_of(equality.aliases) is None
            ),
            output=tuple(OutputColumn(column.name, names.renamed(column.expression)) for column in query.output),
            time_bounds=tuple(asked.time_bounds),
            residuals=tuple(map(names.renamed, asked.residuals)),
        ),
        collapsed=tuple(Collapsed(collapsed_alias(place), each.aliases) for place, each in enumerate(stand_ins)),
    )


@dataclass
class _Asked:
    """Who asks what: by place what is asked of an intermediate's rows, and what is left to the joined ones."""

    selections: list[list[Expression]]
    residuals: list[Expression] = field(default_factory=list)
    time_bounds: list[TimeBound] = field(default_factory=list)

    def add(self, place: int | None, condition: Expression) -> None:
        (self.residuals if place is None else self.selections[place]).append(condition)


def _asked(live: LiveQuery, names: _Names, streams: Mapping[str, Stream]) -> _Asked:
    query = live.query
    asked = _Asked([[query.relation(alias).selection for alias in each.aliases] for each in names.stand_ins])
    for residual in query.residuals:
        asked.add(names.place_of(relations_of(residual)), residual)
    for (earlier, later), upper_us in live.time_closure.items():
        place = names.place_of({earlier, later})
        if place is None and names.is_timed(earlier) and names.is_timed(later):
            asked.time_bounds.append(TimeBound(names.alias(earlier), names.alias(later), upper_us))
        elif place is None or names.demanded_us(earlier, later) != upper_us:
            asked.add(place, _bound_test(query, earlier, later, upper_us, streams))
    return asked


class _Names:
    """Where each alias goes: (place of the intermediate that stands for it, member there)."""

    def __init__(self, stand_ins: Sequence[StandIn]) -> None:
        self.stand_ins = stand_ins
        self._member_by_alias = {
            alias: (place, member) for place, each in enumerate(stand_ins) for member, alias in enumerate(each.aliases)
        }

    def alias(self, alias: str) -> str:
        found = self._member_by_alias.get(alias)
        return alias if found is None else collapsed_alias(found[0])

    def place_of(self, aliases: Iterable[str]) -> int | None:
        """Of the intermediate that stands for all of these; None if there is no such one."""
        places = {self._member_by_alias[alias][0] if alias in self._member_by_alias else None for alias in aliases}
        return places.pop() if len(places) == 1 else None

    def demanded_us(self, earlier: str, later: str) -> int | None:
        """The bound that the intermediate itself keeps between two of its members."""
        (place, first), (_, second) = self._member_by_alias[earlier], self._member_by_alias[later]
        bounds = {(one, other): upper_us for one, other, upper_us in self.stand_ins[place].intermediate.bounds}
        return bounds.get((first, second))

    def is_timed(self, alias: str) -> bool:
        """Whether the event time of the alias is that of the row which holds it."""
        found = self._member_by_alias.get(alias)
        return found is None or self.stand_ins[found[0]].intermediate.time_member == found[1]

    def all_of(self, conditions: Iterable[Expression]) -> Expression:
        return all_of(tuple(self.renamed(condition) for condition in conditions if condition != TRUE))

    def renamed(self, expression: Expression) -> Expression:
        return transform(expression, self._column)

    def _column(self, column: Column) -> Column:
        found = self._member_by_alias.get(column.relation)
        if found is None:
            return column
        return Column(collapsed_alias(found[0]), member_column(found[1], column.name), column.type)


def _bound_test(query: JoinQuery, earlier: str, later: str, upper_us: int, streams: Mapping[str, Stream]) -> Expression:
    """`later.time - earlier.time <= upper_us`; NULL times satisfy nothing, as with bounds."""
    apart = Call("time_diff", (_time_of(query, later, streams), _time_of(query, earlier, streams)), INTERVAL)
    return Call("le", (apart, Literal(upper_us, INTERVAL)), BOOLEAN)


def _time_of(query: JoinQuery, alias: str, streams: Mapping[str, Stream]) -> Column:
    stream = streams[query.relation(alias).stream]
    kind = stream.type_of(stream.event_time) if stream.event_time else None
    if stream.event_time is None or kind is None:
        raise ValueError(f"a bound speaks of {alias}, which has no event time")
    return Column(alias, stream.event_time, kind)
