"""The plan that runs, said as a joint plan: what EXPLAIN prices, whoever decided it.

    decided   r -> (s+t)         r shall probe the intermediate
    running   r -> s -> t        as long as it may not: the intermediate is maintained already, and its user waits

Two occurrences of a stream are two relations here, so an intermediate that queries use under different ones counts
once for each, as it does for the optimizer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dovetail.optimizer.decisions import Decisions
from dovetail.optimizer.intermediates.kept import KeptIntermediate, Use, maintained_by, member_alias
from dovetail.optimizer.joint.plan import Intermediate, JointPlan, ProbePath, QueryPaths, Step
from dovetail.optimizer.joint.problem import SubJoin
from dovetail.optimizer.joint.view import JointView, NamedQuery
from dovetail.optimizer.orders import Orders
from dovetail.optimizer.passes.derive_forms import derive_forms
from dovetail.plan.live_query import LiveQuery
from dovetail.query.stream import Stream

Taker = tuple[str, int]
"""Who goes through a probe tree, as its legs name it: a query or what maintains a store, and the number of a start."""


@dataclass(frozen=True)
class RunningPlan:
    """`plan` has no cost of its own; `wanted_by` are an intermediate's users, those included that still wait."""

    plan: JointPlan
    path_by_taker: Mapping[Taker, ProbePath]
    wanted_by: Mapping[SubJoin, frozenset[str]]
    joins_by_store: Mapping[str, tuple[SubJoin, ...]]


def running_plan(view: JointView, decisions: Decisions, streams: Mapping[str, Stream], orders: Orders) -> RunningPlan:
    """`orders` are all that the plan takes."""
    forms = derive_forms(tuple(named.live for named in view.queries), streams, decisions)
    path_by_taker: dict[Taker, ProbePath] = {}
    queries = []
    for named in view.queries:
        paths = []
        for number, relation in enumerate(named.live.query.relations):
            key = (named.live.id, relation.alias)
            path = _path(named, _targets(named, forms.collapsed.get(key, named.live), orders[key]))
            path_by_taker[named.live.id, number] = path
            paths.append(path)
        queries.append(QueryPaths(named.live.id, tuple(paths)))
    named_by_id = {named.live.id: named for named in view.queries}
    kept_by_join: dict[SubJoin, Intermediate] = {}
    wanted_by: dict[SubJoin, set[str]] = {}
    joins_by_store: dict[str, tuple[SubJoin, ...]] = {}
    for kept in decisions.intermediates:
        upkeep = list(_upkeep(kept, named_by_id, orders))
        joins_by_store[kept.intermediate.id] = tuple(dict.fromkeys(each.join for _, each in upkeep))
        for use, each in upkeep:
            kept_by_join.setdefault(each.join, each)
            wanted_by.setdefault(each.join, set()).add(use.query)
        for number, path in enumerate(upkeep[0][1].paths):
            path_by_taker[maintained_by(kept.intermediate), number] = path
    plan = JointPlan(tuple(queries), tuple(kept_by_join.values()), (), 0.0)
    return RunningPlan(plan, path_by_taker, {j: frozenset(users) for j, users in wanted_by.items()}, joins_by_store)


def _upkeep(
    kept: KeptIntermediate, named_by_id: Mapping[str, NamedQuery], orders: Orders
) -> Iterator[tuple[Use, Intermediate]]:
    owner = maintained_by(kept.intermediate)
    for use in kept.uses:
        named = named_by_id[use.query]
        relations = {member_alias(place): named.relation_by_alias[alias] for place, alias in enumerate(use.aliases)}
        paths = (
            _path(named, [SubJoin((relations[alias],)) for alias in orders[owner, member]]) for member in relations
        )
        yield use, Intermediate(named.graph.join.within(relations.values()), tuple(paths))


def _targets(named: NamedQuery, form: LiveQuery, order: Iterable[str]) -> list[SubJoin]:
    """The stores that a path visits, its start first."""
    members_by_alias = {kept.alias: kept.members for kept in form.collapsed}
    return [
        named.graph.join.within(named.relation_by_alias[member] for member in members_by_alias.get(alias, (alias,)))
        for alias in order
    ]


def _path(named: NamedQuery, stores: list[SubJoin]) -> ProbePath:
    (start,) = stores[0].relations
    joined = stores[0]
    steps = []
    for target in stores[1:]:
        result = named.graph.join.within(joined.relations + target.relations)
        steps.append(Step(start, joined, target, None, result))
        joined = result
    return ProbePath(start, tuple(steps))
