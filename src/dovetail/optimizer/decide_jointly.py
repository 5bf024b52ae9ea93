"""Probe orders of all queries chosen together (C2, C4): live queries -> joint problem -> orders.

A relation of the joint problem is a store; further occurrences of one in a self-join are relations of their own.
Every store is indexed by whatever probes it, so a probe never has to be broadcast: partitionings need no choice here.
"""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.optimizer.choose_probe_orders import edge_of
from dovetail.optimizer.decide import Decide, Decisions
from dovetail.optimizer.joint.papers_cost import PapersCost, PapersStatistics
from dovetail.optimizer.joint.problem import Attribute, Predicate, Problem, QueryGraph, query_graph
from dovetail.optimizer.joint.solve import solve
from dovetail.optimizer.live_query import LiveQuery, as_row
from dovetail.query.join_query import Equality
from dovetail.query.stream import Stream
from dovetail.stats.catalog import StatsCatalog

SMALLEST = 3
"""A join of two has one order per start: nothing to decide."""


def jointly(budget_s: float) -> Decide:
    """Decides anew when queries or statistics change, within about `budget_s` seconds; in between it remembers."""
    known: tuple[tuple[str, ...], StatsCatalog, Decisions] | None = None

    def decide(
        queries: tuple[LiveQuery, ...], _streams: Mapping[str, Stream], stats: StatsCatalog, _batch: int
    ) -> Decisions:
        nonlocal known
        names = tuple(live.id for live in queries)
        if known is None or known[0] != names or known[1] is not stats:
            known = (names, stats, decide_orders(queries, stats, budget_s))
        return known[2]

    return decide


def decide_orders(queries: tuple[LiveQuery, ...], stats: StatsCatalog, budget_s: float) -> Decisions:
    large = [live for live in queries if len(live.query.relations) >= SMALLEST]
    if not large:
        return Decisions()
    names_by_query = {live.id: _relation_names(live) for live in large}
    rows: dict[str, float] = {}
    selectivities: dict[Predicate, float] = {}
    graphs = []
    for live in large:
        names = names_by_query[live.id]
        for relation in live.query.relations:
            rows[names[relation.alias]] = stats.rows(relation.stream).value
        for equality in live.query.equalities:
            selectivities[_predicate(equality, names)] = min(stats.match(edge_of(live.query, equality)).value, 1.0)
        graphs.append(_graph(live, names))
    cost_model = PapersCost(PapersStatistics(rows, selectivities))
    problem = Problem(tuple(graphs), cost_model, may_materialize=False, may_partition=False)
    plan = solve(problem, budget_s).plan
    orders = {}
    for paths in plan.queries:
        alias_by_name = {name: alias for alias, name in names_by_query[paths.query].items()}
        for path in paths.paths:
            targets = [step.target.relations[0] for step in path.steps]
            orders[paths.query, alias_by_name[path.start]] = tuple(alias_by_name[n] for n in (path.start, *targets))
    return Decisions(orders)


def _relation_names(live: LiveQuery) -> dict[str, str]:
    return {
        alias: store if occurrence == 0 else f"{store}#{occurrence}"
        for alias, (_, store, occurrence) in live.rank_by_alias.items()
    }


def _graph(live: LiveQuery, names: Mapping[str, str]) -> QueryGraph:
    return query_graph(live.id, [_predicate(equality, names) for equality in live.query.equalities])


def _predicate(equality: Equality, names: Mapping[str, str]) -> Predicate:
    first, second = sorted(
        Attribute(names[alias], str(as_row(equality.side_of(alias), alias))) for alias in equality.aliases
    )
    return Predicate(first, second)
