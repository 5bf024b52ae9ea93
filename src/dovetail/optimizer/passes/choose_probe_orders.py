"""Greedy probe orders (M2, MultiStream Fig. 4): for each start relation, the next store is the one that
keeps this step's traffic plus the cheapest following step's traffic smallest.

    R joins S on x, S joins T on y; |R|=100, |S|=1000, |T|=10; start S:
    S,R,T ships |S| + |S x R|;  S,T,R ships |S| + |S x T|: the smaller intermediate goes first.

Partial results of j relations count 1/j: only those whose newest member is the start exist. Among equally
good stores one that an earlier query already probes at this point wins, since a shared step is paid once.
A store that an equality reaches goes before one that other conditions reach. Sharing of chosen orders is
`share_probe_prefixes`' work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dovetail.optimizer.passes.weak_edges import WeakEdge, weak_edges
from dovetail.optimizer.pricing.match_of_all import Equated, match_of_all
from dovetail.plan.live_query import LiveQuery, as_row, store_of
from dovetail.query.join_query import Equality, JoinQuery
from dovetail.stats.catalog import StatsCatalog, edge_text

IsShared = Callable[[tuple[str, ...], str], bool]
"""Whether another query already goes from these joined aliases to that alias."""


@dataclass(frozen=True)
class ProbeOrder:
    """Aliases in the order they are joined; the first is the start."""

    aliases: tuple[str, ...]


def choose_probe_order(live: LiveQuery, start: str, stats: StatsCatalog, is_shared: IsShared) -> ProbeOrder:
    query = live.query
    order = [start]
    remaining = [relation.alias for relation in query.relations if relation.alias != start]
    factors: _Factors | None = None
    while remaining:
        reachable = reachable_from(query, order, remaining)
        if len(reachable) == 1:
            best = reachable[0]
        else:
            factors = factors or _Factors.of(query, stats)
            costs = {a: factors.two_step_cost(order, a, is_last=len(remaining) == 1) for a in reachable}
            best = min(
                reachable,
                key=lambda a: (costs[a], not is_shared(tuple(order), a), live.rank_by_alias[a]),
            )
        order.append(best)
        remaining.remove(best)
    return ProbeOrder(tuple(order))


def edges_between(query: JoinQuery, joined: list[str], alias: str) -> list[Equality]:
    """The equalities that connect `alias` with what is joined already."""
    return [
        equality
        for equality in query.equalities
        if alias in equality.aliases and len(equality.aliases & set(joined)) == 1
    ]


def reachable_from(query: JoinQuery, joined: Sequence[str], remaining: Sequence[str]) -> list[str]:
    """What may be joined next: whatever an equality reaches, else some other condition that is then decided.

    Failing that, what a condition over more relations speaks of: it is decided once the last of them is there.
    """
    found = [alias for alias in remaining if edges_between(query, list(joined), alias)]
    if not found:
        found = [alias for alias in remaining if _decides(query, joined, alias)]
    if not found:
        found = [
            alias for alias in remaining if any(alias in each and each & set(joined) for each in query.connections)
        ]
    return found


def _decides(query: JoinQuery, joined: Sequence[str], alias: str) -> bool:
    return any(alias in each and each - {alias} <= set(joined) for each in query.connections)


def estimated_rows(query: JoinQuery, joined: Sequence[str], stats: StatsCatalog) -> float:
    """Partial results over `joined` whose newest member is the first."""
    return _Factors.of(query, stats).rows(joined)


@dataclass(frozen=True)
class _Factors:
    """What sizes of a query's partial results are made of, looked up once for all orders."""

    rows_by_alias: Mapping[str, float]
    equated: tuple[tuple[frozenset[str], Equated], ...]
    weak_edges: tuple[WeakEdge, ...]

    @staticmethod
    def of(query: JoinQuery, stats: StatsCatalog) -> _Factors:
        rows_by_alias = {
            relation.alias: stats.rows(relation.stream).value
            * stats.selection(as_row(relation.selection, relation.alias), store_of(relation)).value
            for relation in query.relations
        }
        equated = ((equality.aliases, _equated(query, equality, stats)) for equality in query.equalities)
        return _Factors(rows_by_alias, tuple(equated), weak_edges(query))

    def rows(self, joined: Sequence[str]) -> float:
        rows = 1.0 / len(joined)
        for alias in joined:
            rows *= self.rows_by_alias[alias]
        members = set(joined)
        rows *= math.prod(edge.match for edge in self.weak_edges if edge.aliases <= members)
        return rows * match_of_all(equated for aliases, equated in self.equated if aliases <= members)

    def two_step_cost(self, order: Sequence[str], alias: str, *, is_last: bool) -> float:
        """|R| + |R join next| shipped onwards; the last step ships nothing on."""
        return self.rows(order) + (0.0 if is_last else self.rows([*order, alias]))


def _equated(query: JoinQuery, equality: Equality, stats: StatsCatalog) -> Equated:
    one, other = sorted(equality.aliases)
    return equality.side_of(one), equality.side_of(other), stats.match(edge_of(query, equality)).value


def edge_of(query: JoinQuery, equality: Equality) -> str:
    """The equality's name in statistics, the same in every query."""
    sides = [
        str(equality.side_of(alias)).replace(f"{alias}.", f"{query.relation(alias).stream}.")
        for alias in sorted(equality.aliases)
    ]
    return edge_text(sides[0], sides[1])
