"""Queries that use an intermediate: the query that maintains it, and theirs with its members folded into one relation.

    q: a.x = b.y AND b.z = c.z          kept: (a * b)[0.x=1.y]
    maintained by  a JOIN b ON a.x = b.y, whose rows go into the store
    folded for c   c JOIN (a * b) ON c.z = "1.z": one probe instead of two

A start may take the fold only if all members rank below it: then it sees earlier batches of them only, and these
the store holds before the batch begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from dovetail.plan.fill import FillSource
from dovetail.plan.intermediate import Intermediate, member_column
from dovetail.plan.live_query import Folded, LiveQuery
from dovetail.plan.visibility import Visibility, visibility
from dovetail.query.expression import (
    TRUE,
    Call,
    Column,
    Expression,
    Literal,
    all_of,
    columns_of,
    relations_of,
    transform,
    walk,
)
from dovetail.query.join_query import Equality, JoinQuery, OutputColumn, Relation, TimeBound
from dovetail.query.stream import Stream
from dovetail.query.types import BOOLEAN, INTERVAL

_SAFE_FUNCTIONS = frozenset({"and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "is_null", "in"})


def folded_alias(place: int) -> str:
    """The alias of a query's intermediate number `place`; no plain SQL name has a space."""
    return f"kept {place}"


@dataclass(frozen=True)
class Use:
    """A query that wants the intermediate: which of its relations are the members, which starts shall probe it.

    `starts` are those that may do so now; the others wait until the store holds all they can still join.
    """

    query: str
    aliases: tuple[str, ...]
    wanted_starts: tuple[str, ...]
    starts: tuple[str, ...] = ()


@dataclass(frozen=True)
class KeptIntermediate:
    """An intermediate, the first batch whose rows it joins, who uses it (at least one), and the fill under way."""

    intermediate: Intermediate
    complete_from: int
    uses: tuple[Use, ...]
    fill: FillSource | None = None


def maintained_by(intermediate: Intermediate) -> str:
    """The id of the query whose rows are the store's."""
    return f"store {intermediate.id}"


def foldable_subsets(live: LiveQuery) -> list[tuple[str, ...]]:
    """Relations that could be kept as one: connected, of different streams, joined by plain columns."""
    query = live.query
    found = []
    for size in range(2, len(query.relations)):
        for relations in combinations(query.relations, size):
            aliases = tuple(relation.alias for relation in sorted(relations, key=lambda relation: relation.stream))
            if _is_foldable(query, relations) and _is_connected(query, aliases):
                found.append(aliases)
    return found


def starts_of(live: LiveQuery, aliases: Sequence[str]) -> tuple[str, ...]:
    """The starts that may probe a store of these relations: they see earlier batches of every member only."""
    ranks = live.rank_by_alias
    return tuple(
        relation.alias
        for relation in live.query.relations
        if relation.alias not in aliases
        and all(visibility(ranks[relation.alias], ranks[alias]) is Visibility.EARLIER for alias in aliases)
    )


def intermediate_of(live: LiveQuery, aliases: Sequence[str], streams: Mapping[str, Stream]) -> Intermediate:
    """What a query would keep of these relations, named in the order of their streams."""
    place = {alias: member for member, alias in enumerate(aliases)}
    equalities = set()
    for equality in live.query.equalities:
        if equality.aliases <= set(aliases):
            sides = [
                member_column(place[side.relation], side.name)
                for side in (equality.a_side, equality.b_side)
                if isinstance(side, Column)
            ]
            equalities.add((min(sides), max(sides)))
    bounds = [
        (place[earlier], place[later], upper_us)
        for (earlier, later), upper_us in live.time_closure.items()
        if earlier in place and later in place
    ]
    member_streams = tuple(live.query.relation(alias).stream for alias in aliases)
    times = tuple(streams[stream].event_time for stream in member_streams)
    return Intermediate(member_streams, tuple(sorted(equalities)), tuple(sorted(bounds)), times)


@dataclass(frozen=True)
class Part:
    """Relations of a query that an intermediate stands for, in the order of its members."""

    aliases: tuple[str, ...]
    intermediate: Intermediate


def fold(live: LiveQuery, parts: Sequence[Part], streams: Mapping[str, Stream]) -> LiveQuery:
    """The same query with each part as one relation. What an intermediate does not ask of its rows, the query does."""
    query = live.query
    folding = _Folding(parts)
    selections = {
        place: [query.relation(alias).selection for alias in part.aliases] for place, part in enumerate(parts)
    }
    outside: list[Expression] = []
    for residual in query.residuals:
        place = folding.place_of(relations_of(residual))
        (outside if place is None else selections[place]).append(residual)
    time_bounds = []
    for (earlier, later), upper_us in live.time_closure.items():
        place = folding.place_of({earlier, later})
        if place is not None:
            if folding.demanded_us(earlier, later) != upper_us:
                selections[place].append(_bound_test(query, earlier, later, upper_us, streams))
        elif folding.is_timed(earlier) and folding.is_timed(later):
            time_bounds.append(TimeBound(folding.alias(earlier), folding.alias(later), upper_us))
        else:
            outside.append(_bound_test(query, earlier, later, upper_us, streams))
    folded = tuple(
        Relation(
            folded_alias(place),
            part.intermediate.id,
            all_of(tuple(folding.renamed(expression) for expression in selections[place] if expression != TRUE)),
        )
        for place, part in enumerate(parts)
    )
    return replace(
        live,
        query=JoinQuery(
            sql=query.sql,
            relations=(*(r for r in query.relations if r.alias == folding.alias(r.alias)), *folded),
            equalities=tuple(
                Equality(folding.renamed(equality.a_side), folding.renamed(equality.b_side))
                for equality in query.equalities
                if folding.place_of(equality.aliases) is None
            ),
            output=tuple(OutputColumn(column.name, folding.renamed(column.expression)) for column in query.output),
            time_bounds=tuple(time_bounds),
            residuals=tuple(map(folding.renamed, outside)),
        ),
        folded=tuple(Folded(folded_alias(place), part.aliases) for place, part in enumerate(parts)),
    )


class _Folding:
    """Where each alias goes: (place of its part, member of the intermediate)."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self._member_by_alias = {
            alias: (place, member) for place, part in enumerate(parts) for member, alias in enumerate(part.aliases)
        }

    def alias(self, alias: str) -> str:
        found = self._member_by_alias.get(alias)
        return alias if found is None else folded_alias(found[0])

    def place_of(self, aliases: Iterable[str]) -> int | None:
        """The part that all these aliases are of; None if there is no such one."""
        places = {self._member_by_alias[alias][0] if alias in self._member_by_alias else None for alias in aliases}
        return places.pop() if len(places) == 1 else None

    def demanded_us(self, earlier: str, later: str) -> int | None:
        """The bound that the intermediate itself keeps between two of its members."""
        (place, first), (_, second) = self._member_by_alias[earlier], self._member_by_alias[later]
        bounds = {(one, other): upper_us for one, other, upper_us in self._parts[place].intermediate.bounds}
        return bounds.get((first, second))

    def is_timed(self, alias: str) -> bool:
        """Whether the event time of the alias is that of the row which holds it."""
        found = self._member_by_alias.get(alias)
        return found is None or self._parts[found[0]].intermediate.time_member == found[1]

    def renamed(self, expression: Expression) -> Expression:
        return transform(expression, self._column)

    def _column(self, column: Column) -> Column:
        found = self._member_by_alias.get(column.relation)
        if found is None:
            return column
        return Column(folded_alias(found[0]), member_column(found[1], column.name), column.type)


def maintaining_query(
    kept: KeptIntermediate, queries: Mapping[str, LiveQuery], streams: Mapping[str, Stream]
) -> LiveQuery:
    """The query whose rows are the store's: all that some user may want, with every column that one names."""
    intermediate = kept.intermediate
    users = [(queries[use.query], use.aliases) for use in kept.uses]
    columns: set[str] = set()
    for live, aliases in users:
        columns |= _columns_of_fold(fold(live, [Part(aliases, intermediate)], streams))
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


def _is_foldable(query: JoinQuery, relations: Iterable[Relation]) -> bool:
    relations = list(relations)
    aliases = {relation.alias for relation in relations}
    inside = [equality for equality in query.equalities if equality.aliases <= aliases]
    return (
        len({relation.stream for relation in relations}) == len(relations)
        and all(relation.hop_window is None for relation in relations)
        and all(isinstance(side, Column) for equality in inside for side in (equality.a_side, equality.b_side))
    )


def _is_connected(query: JoinQuery, aliases: Sequence[str]) -> bool:
    reached = {aliases[0]}
    grew = True
    while grew:
        grew = False
        for equality in query.equalities:
            if equality.aliases <= set(aliases) and len(equality.aliases & reached) == 1:
                reached |= equality.aliases
                grew = True
    return reached == set(aliases)


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


def _columns_of_fold(folded: LiveQuery) -> set[str]:
    query, alias = folded.query, folded.folded[0].alias
    expressions = [*query.residuals, *(column.expression for column in query.output)]
    expressions += [side for equality in query.equalities for side in (equality.a_side, equality.b_side)]
    expressions.append(query.relation(alias).selection)
    return {c.name for expression in expressions for c in columns_of(expression) if c.relation == alias}


def member_alias(member: int) -> str:
    """What the maintaining query calls a member."""
    return f"i{member}"


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
