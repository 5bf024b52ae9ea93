"""Query groups of every join edge (A5), as the joint optimizer uses them: predicates of different groups are different.

    q1, q2 want the same rows of a and b, q3 a few others:  a.x = b.x for q1 and q2, a.x = b.x @1 for q3
    a step of q1 and q2 is planned and paid once; q3 may have another order and its own intermediate

If both choose the same step after all, the runtime takes it once: groups guide the plan, they never forbid sharing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dovetail.optimizer.passes.choose_probe_orders import edge_of
from dovetail.optimizer.query_groups.engine_group_cost import EngineGroupCost
from dovetail.optimizer.query_groups.group_queries import Groups, JoinUse, group_uses
from dovetail.plan.live_query import LiveQuery, as_row, store_of
from dovetail.query.join_query import Equality
from dovetail.stats.catalog import StatsCatalog


class EdgeGroups:
    """The group of every use of an edge, as a mark in the names of predicates: none for the first group."""

    def __init__(self, mark_by_use: Mapping[tuple[str, str], str]) -> None:
        self._mark_by_use = mark_by_use

    def mark(self, live: LiveQuery, equality: Equality) -> str:
        return self._mark_by_use[edge_of(live.query, equality), _use_name(live, equality)]


def group_edges(queries: Iterable[LiveQuery], stats: StatsCatalog) -> EdgeGroups:
    uses_by_edge: dict[str, list[tuple[LiveQuery, Equality]]] = {}
    for live in queries:
        for equality in live.query.equalities:
            uses_by_edge.setdefault(edge_of(live.query, equality), []).append((live, equality))
    marks: dict[tuple[str, str], str] = {}
    for edge, uses in sorted(uses_by_edge.items()):
        for number, group in enumerate(_groups(edge, uses, stats)):
            for use in group:
                marks[edge, use.query] = f"@{number}" if number else ""
    return EdgeGroups(marks)


def _use_name(live: LiveQuery, equality: Equality) -> str:
    """A query may use an edge twice, with other selections: each use has a name of its own."""
    return f"{live.id} {' '.join(_sides(live, equality))}"


def _groups(edge: str, uses: list[tuple[LiveQuery, Equality]], stats: StatsCatalog) -> Groups:
    live, equality = uses[0]
    if len(uses) == 1:
        return ((_join_use(live, equality),),)
    a, b = (live.query.relation(alias) for alias in _sides(live, equality))
    cost = EngineGroupCost(
        stats,
        store_of(a),
        store_of(b),
        min(stats.match(edge).value, 1.0),
        a_rows=stats.rows(a.stream).value,
        b_rows=stats.rows(b.stream).value,
    )
    return group_uses([_join_use(live, equality) for live, equality in uses], cost)


def _join_use(live: LiveQuery, equality: Equality) -> JoinUse:
    a, b = (as_row(live.query.relation(alias).selection, alias) for alias in _sides(live, equality))
    return JoinUse(_use_name(live, equality), a, b)


def _sides(live: LiveQuery, equality: Equality) -> tuple[str, str]:
    """The same stream first in every query, whatever the aliases."""
    a, b = sorted(equality.aliases, key=lambda alias: (store_of(live.query.relation(alias)), alias))
    return a, b
