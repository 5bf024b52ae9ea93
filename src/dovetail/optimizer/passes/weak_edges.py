"""Pairs of relations that no equality connects, even over others, but some other condition does.

    a.k = b.k AND b.x < c.y        a and b are one part, c another; b and c are joined by a weak edge

Nobody counts how many pairs such conditions leave, so the probability is a fixed one by their form.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from dovetail.query.expression import Call, Expression, relations_of, walk
from dovetail.query.join_query import JoinQuery

INEQUALITY_MATCH = 1 / 3
BAND_MATCH = 1 / 10
_ONE_SIDED = ("lt", "le", "gt", "ge")


@dataclass(frozen=True)
class WeakEdge:
    """Two relations, and how probable it is assumed to be that two rows of them meet."""

    one: str
    other: str
    match: float

    @property
    def aliases(self) -> frozenset[str]:
        return frozenset({self.one, self.other})


def weak_edges(query: JoinQuery) -> tuple[WeakEdge, ...]:
    part_by_alias = _parts(query)
    pairs = {
        pair: None
        for aliases in query.connections
        for pair in combinations(sorted(aliases), 2)
        if part_by_alias[pair[0]] != part_by_alias[pair[1]]
    }
    return tuple(WeakEdge(one, other, _match(query, one, other)) for one, other in pairs)


def _parts(query: JoinQuery) -> dict[str, str]:
    """By alias, the least alias that equalities connect it with."""
    part_by_alias = {relation.alias: relation.alias for relation in query.relations}
    for equality in query.equalities:
        one, other = sorted(part_by_alias[alias] for alias in equality.aliases)
        part_by_alias = {alias: one if part == other else part for alias, part in part_by_alias.items()}
    return part_by_alias


def _match(query: JoinQuery, one: str, other: str) -> float:
    conditions = [residual for residual in query.residuals if relations_of(residual) == {one, other}]
    if not conditions:
        return 1.0
    return INEQUALITY_MATCH if len(conditions) == 1 and _is_one_sided(conditions[0]) else BAND_MATCH


def _is_one_sided(condition: Expression) -> bool:
    is_absolute = any(isinstance(part, Call) and part.function == "abs" for part in walk(condition))
    return isinstance(condition, Call) and condition.function in _ONE_SIDED and not is_absolute
