"""Greedy probe orders (M2, MultiStream Fig. 4): for each start relation, the next store is the one that
keeps this step's traffic plus the cheapest following step's traffic smallest.

    R joins S on x, S joins T on y; |R|=100, |S|=1000, |T|=10; start S:
    S,R,T ships |S| + |S x R|;  S,T,R ships |S| + |S x T|: the smaller intermediate goes first.

Partial results of j relations count 1/j: only those whose newest member is the start exist. Among equally
good stores one that an earlier query already probes at this point wins, since a shared step is paid once.
It never takes a store that no equality reaches. Sharing of chosen orders is `share_probe_prefixes`' work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dovetail.optimizer.live_query import LiveQuery, as_row, store_of
from dovetail.optimizer.match_of_all import Equated, match_of_all
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
    while remaining:
        reachable = [alias for alias in remaining if edges_between(query, order, alias)]
        best = min(
            reachable,
            key=lambda alias: (
                _two_step_cost(query, order, alias, remaining, stats),
                not is_shared(tuple(order), alias),
                live.rank_by_alias[alias],
            ),
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


def _two_step_cost(query: JoinQuery, order: list[str], alias: str, remaining: list[str], stats: StatsCatalog) -> float:
    """|R| + |R join next| shipped onwards; the last step ships nothing on."""
    shipped_now = estimated_rows(query, order, stats)
    shipped_next = estimated_rows(query, [*order, alias], stats) if len(remaining) > 1 else 0.0
    return shipped_now + shipped_next


def estimated_rows(query: JoinQuery, joined: list[str], stats: StatsCatalog) -> float:
    """Partial results over `joined` whose newest member is the first."""
    rows = 1.0 / len(joined)
    for alias in joined:
        relation = query.relation(alias)
        rows *= (
            stats.rows(relation.stream).value
            * stats.selection(as_row(relation.selection, alias), store_of(relation)).value
        )
    return rows * match_of_all(
        _equated(query, equality, stats) for equality in query.equalities if equality.aliases <= set(joined)
    )


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
