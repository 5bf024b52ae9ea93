"""Which joins of a query could be kept, which of its starts might probe them, and what equal joins make together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from dovetail.optimizer.intermediates.kept import KeptIntermediate, Use
from dovetail.plan.intermediate import Intermediate, member_column
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.visibility import Visibility, visibility
from dovetail.query.expression import Column
from dovetail.query.join_query import JoinQuery, Relation
from dovetail.query.stream import Stream


def keepable_subsets(live: LiveQuery) -> list[tuple[str, ...]]:
    """Relations that could be kept as one: connected, of different streams, joined by plain columns."""
    query = live.query
    found = []
    for size in range(2, len(query.relations)):
        for relations in combinations(query.relations, size):
            aliases = tuple(relation.alias for relation in sorted(relations, key=lambda relation: relation.stream))
            if _is_keepable(query, relations) and _is_connected(query, aliases):
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


def intermediates_of(
    chosen: list[tuple[LiveQuery, tuple[str, ...], tuple[str, ...]]], streams: Mapping[str, Stream]
) -> tuple[KeptIntermediate, ...]:
    """Intermediates from (query, members, starts); equal joins of different queries are one, within loosest bounds."""
    uses: dict[Intermediate, list[Use]] = {}
    loosest: dict[Intermediate, Intermediate] = {}
    for live, aliases, starts in chosen:
        own = intermediate_of(live, aliases, streams)
        join = replace(own, bounds=())
        loosest[join] = loosest[join].loosened(own) if join in loosest else own
        uses.setdefault(join, []).append(Use(live.id, aliases, starts))
    kept = (KeptIntermediate(loosest[join], 0, tuple(found)) for join, found in uses.items())
    return tuple(sorted(kept, key=lambda each: each.intermediate.id))


def _is_keepable(query: JoinQuery, relations: Iterable[Relation]) -> bool:
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
