"""Live queries as the joint optimizer sees them, and its plan as decisions for the engine.

    q: FROM orders o JOIN items i ON o.id = i.oid JOIN orders p ON i.ref = p.id
    relations  orders, items, orders#1     a relation is a store, further occurrences of one are relations of their own
    predicates items.oid = orders.id, items.ref = orders#1.id

A weak edge (a condition that is no equality, between relations that no equality connects) is a predicate, too: steps
may go along it, but no intermediate is joined by one. Every store is indexed by whatever probes it, so a probe never
has to be broadcast: partitionings need no choice here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dovetail.optimizer.decisions import Decisions
from dovetail.optimizer.intermediates.candidates import intermediates_of, keepable_subsets
from dovetail.optimizer.intermediates.kept import KeptIntermediate, maintained_by, member_alias
from dovetail.optimizer.joint.engine_cost import EngineCost
from dovetail.optimizer.joint.plan import JointPlan, ProbePath, QueryPaths, Step
from dovetail.optimizer.joint.problem import Attribute, Predicate, Problem, QueryGraph, SubJoin
from dovetail.optimizer.orders import Orders
from dovetail.optimizer.passes.choose_probe_orders import reachable_from
from dovetail.optimizer.passes.weak_edges import WeakEdge, weak_edges
from dovetail.optimizer.query_groups.group_edges import EdgeGroups
from dovetail.plan.live_query import LiveQuery, as_row
from dovetail.query.join_query import Equality
from dovetail.query.stream import Stream


@dataclass(frozen=True)
class NamedQuery:
    """A live query, its join graph, and how its aliases are called there."""

    live: LiveQuery
    graph: QueryGraph
    relation_by_alias: Mapping[str, str]
    groups: EdgeGroups

    @property
    def alias_by_relation(self) -> dict[str, str]:
        return {relation: alias for alias, relation in self.relation_by_alias.items()}

    def predicate(self, equality: Equality) -> Predicate:
        return _predicate(equality, self.relation_by_alias, self.groups.mark(self.live, equality))

    @property
    def weak_predicates(self) -> dict[Predicate, WeakEdge]:
        return {_weak_predicate(edge, self.relation_by_alias): edge for edge in weak_edges(self.live.query)}


def name_queries(queries: Iterable[LiveQuery], groups: EdgeGroups) -> tuple[NamedQuery, ...]:
    return tuple(_named(live, groups) for live in queries)


def _named(live: LiveQuery, groups: EdgeGroups) -> NamedQuery:
    names = {
        alias: store if occurrence == 0 else f"{store}#{occurrence}"
        for alias, (_, store, occurrence) in live.rank_by_alias.items()
    }
    predicates = {_predicate(equality, names, groups.mark(live, equality)) for equality in live.query.equalities}
    predicates |= {_weak_predicate(edge, names) for edge in weak_edges(live.query)}
    join = SubJoin(tuple(sorted(names.values())), tuple(sorted(predicates)))
    keepable = frozenset(join.within(names[alias] for alias in aliases) for aliases in keepable_subsets(live))
    return NamedQuery(live, QueryGraph(live.id, join, live.may_materialize, keepable), names, groups)


def _predicate(equality: Equality, names: Mapping[str, str], group: str) -> Predicate:
    first, second = sorted(
        Attribute(names[alias], f"{as_row(equality.side_of(alias), alias)}{group}") for alias in equality.aliases
    )
    return Predicate(first, second)


def _weak_predicate(edge: WeakEdge, names: Mapping[str, str]) -> Predicate:
    """Queries share a step without keys whatever they ask of its pairs, as long as they expect as many."""
    first, second = sorted(Attribute(names[alias], f"any of {edge.match:.2g}") for alias in edge.aliases)
    return Predicate(first, second)


@dataclass(frozen=True)
class JointView:
    queries: tuple[NamedQuery, ...]
    cost_model: EngineCost
    may_materialize: bool
    storage_budget: float | None = None

    def problem(self, rank_order: Sequence[str] | None) -> Problem:
        """With None as rank order the engine could not run every plan of the problem; it is a question, not a plan."""
        return Problem(
            tuple(named.graph for named in self.queries),
            self.cost_model,
            may_materialize=self.may_materialize,
            may_partition=False,
            storage_budget=self.storage_budget,
            rank_order=None if rank_order is None else self.relation_ranks(rank_order),
            may_nest=False,
        )

    def relation_ranks(self, rank_order: Sequence[str]) -> tuple[str, ...]:
        """All relations in the order of their ranks, given that of the stores."""
        place_by_store = {store: place for place, store in enumerate(rank_order)}
        ranks = {}
        for named in self.queries:
            for alias, (_, store, occurrence) in named.live.rank_by_alias.items():
                ranks[named.relation_by_alias[alias]] = (place_by_store.get(store, len(rank_order)), store, occurrence)
        return tuple(sorted(ranks, key=lambda relation: ranks[relation]))

    def rows_by_store(self) -> dict[str, float]:
        """Rows that a batch brings."""
        rows = self.cost_model.statistics.batch_rows_by_relation
        return {store: rows[relation] for relation, store in self.store_by_relation().items()}

    def store_by_relation(self) -> dict[str, str]:
        return {
            named.relation_by_alias[alias]: store
            for named in self.queries
            for alias, (_, store, _) in named.live.rank_by_alias.items()
        }

    def plan_of(self, orders: Orders) -> JointPlan:
        """Orders over base relations as a joint plan; its cost is left open."""
        found = []
        for named in self.queries:
            paths = [
                _path(named, tuple(named.relation_by_alias[alias] for alias in orders[named.live.id, relation.alias]))
                for relation in named.live.query.relations
            ]
            found.append(QueryPaths(named.live.id, tuple(paths)))
        return JointPlan(tuple(found), (), (), 0.0)

    def decisions(self, plan: JointPlan, rank_order: Sequence[str], streams: Mapping[str, Stream]) -> Decisions:
        named_by_id = {named.live.id: named for named in self.queries}
        orders: dict[tuple[str, str], tuple[str, ...]] = {}
        starts_by_use: dict[tuple[str, SubJoin], list[str]] = {}
        for paths in plan.queries:
            named = named_by_id[paths.query]
            for path in paths.paths:
                start = named.alias_by_relation[path.start]
                orders[paths.query, start] = _order(named, path)
                for step in path.steps:
                    if not step.target.is_base:
                        starts_by_use.setdefault((paths.query, step.target), []).append(start)
        uses = [_JoinUse(named_by_id[query], _members(named_by_id[query], join), join) for query, join in starts_by_use]
        starts = map(tuple, starts_by_use.values())
        kept = intermediates_of(
            [(use.named.live, use.members, s) for use, s in zip(uses, starts, strict=True)], streams
        )
        paths_by_join = {each.join: each.paths for each in plan.intermediates}
        for use in uses:
            orders |= _upkeep_orders(use, paths_by_join[use.join], kept)
        return Decisions(orders, kept, tuple(rank_order))


@dataclass(frozen=True)
class _JoinUse:
    """A query whose `members` are kept as `join`."""

    named: NamedQuery
    members: tuple[str, ...]
    join: SubJoin


def _members(named: NamedQuery, join: SubJoin) -> tuple[str, ...]:
    aliases = (named.alias_by_relation[relation] for relation in join.relations)
    return tuple(sorted(aliases, key=lambda alias: named.live.query.relation(alias).stream))


def _upkeep_orders(use: _JoinUse, paths: Iterable[ProbePath], kept: Iterable[KeptIntermediate]) -> Orders:
    """How the new rows of each member find the others."""
    owner = next(
        each for each in kept if any(own.query == use.named.live.id and own.aliases == use.members for own in each.uses)
    )
    alias_by_relation = {
        use.named.relation_by_alias[alias]: member_alias(place) for place, alias in enumerate(use.members)
    }
    visited = [[path.start, *(step.target.relations[0] for step in path.steps)] for path in paths]
    return {
        (maintained_by(owner.intermediate), alias_by_relation[relations[0]]): tuple(
            alias_by_relation[relation] for relation in relations
        )
        for relations in visited
    }


def _path(named: NamedQuery, relations: tuple[str, ...]) -> ProbePath:
    join = named.graph.join
    steps = tuple(
        Step(
            relations[0],
            join.within(relations[:place]),
            SubJoin((relations[place],)),
            None,
            join.within(relations[: place + 1]),
        )
        for place in range(1, len(relations))
    )
    return ProbePath(relations[0], steps)


def _order(named: NamedQuery, path: ProbePath) -> tuple[str, ...]:
    """Aliases in the order of the path. Members of an intermediate follow one another, each joined to one before it:
    a start that may not probe it yet visits them one by one.
    """
    alias_by_relation = named.alias_by_relation
    order = [alias_by_relation[path.start]]
    for step in path.steps:
        waiting = [alias_by_relation[relation] for relation in step.target.relations]
        while waiting:
            following = reachable_from(named.live.query, order, waiting)[0]
            waiting.remove(following)
            order.append(following)
    return tuple(order)
