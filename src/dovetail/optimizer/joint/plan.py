"""A joint plan as plain data, and the check that it is one.

    q1, start R:  R -> S[S.b] -> T[T.c]        two steps over base stores
    q1, start R:  R -> (S+T on S.c=T.c)[S.b]   one step; then S -> T and T -> S maintain the intermediate

A step is known by its start, what is joined so far, the next store and its partitioning. How the joined part came
about does not matter, so equal steps of different queries, or of a query and an intermediate, are paid once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dovetail.core.errors import DovetailError
from dovetail.core.text_tree import TextTree
from dovetail.optimizer.joint.problem import Attribute, Predicate, Problem, QueryGraph, SubJoin

COST_TOLERANCE = 1e-9


class InvalidPlan(DovetailError):
    """A joint plan that would lose or double answers, or whose cost is not what its steps cost."""


@dataclass(frozen=True, slots=True)
class Step:
    """Send `joined`, whose newest member is of `start`, to the store `target`; `result` is what comes out."""

    start: str
    joined: SubJoin
    target: SubJoin
    partitioning: Attribute | None
    result: SubJoin

    def __str__(self) -> str:
        return f"{self.start}: {self.joined} -> {self.target_text}"

    @property
    def target_text(self) -> str:
        return f"{self.target}[{self.partitioning}]" if self.partitioning else str(self.target)

    @property
    def crossing(self) -> tuple[Predicate, ...]:
        """Predicates between what is joined and the target."""
        target = self.target.relations
        return tuple(each for each in self.result.predicates if each.touches(target) and not each.is_within(target))


@dataclass(frozen=True)
class ProbePath:
    """The steps of one start, from a single relation to the whole join."""

    start: str
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return " -> ".join([self.start, *(step.target_text for step in self.steps)])


@dataclass(frozen=True)
class QueryPaths:
    query: str
    paths: tuple[ProbePath, ...]


@dataclass(frozen=True)
class Intermediate:
    """A materialized sub-join and the paths that maintain it, one per relation of it."""

    join: SubJoin
    paths: tuple[ProbePath, ...]


@dataclass(frozen=True)
class StorePartitioning:
    store: SubJoin
    attribute: Attribute | None


@dataclass(frozen=True)
class JointPlan:
    queries: tuple[QueryPaths, ...]
    intermediates: tuple[Intermediate, ...]
    partitionings: tuple[StorePartitioning, ...]
    cost: float

    def paths(self) -> Iterator[ProbePath]:
        for query in self.queries:
            yield from query.paths
        for kept in self.intermediates:
            yield from kept.paths

    def steps(self) -> list[Step]:
        """Each step once, in the order of first use."""
        return list(dict.fromkeys(step for path in self.paths() for step in path.steps))

    def text_tree(self) -> TextTree:
        queries = [TextTree(f"query {each.query}", _lines(each.paths)) for each in self.queries]
        kept = [TextTree(f"intermediate {each.join}", _lines(each.paths)) for each in self.intermediates]
        stores = [f"{each.store} by {each.attribute}" for each in self.partitionings if each.attribute]
        partitionings = [TextTree("partitioned", tuple(map(TextTree, stores)))] if stores else []
        return TextTree(f"joint plan, cost {self.cost:.6g}", (*queries, *kept, *partitionings))

    def check(self, problem: Problem) -> None:
        """Raise `InvalidPlan` unless this plan answers exactly the problem's queries at the cost it states."""
        _check_owners(self, problem)
        query_by_name = {query.name: query for query in problem.queries}
        for each in self.queries:
            query = query_by_name[each.query]
            _check_paths(each.query, query.join, each.paths)
            _check_probes(each.query, query, each.paths, problem)
        for kept in self.intermediates:
            _check_paths(str(kept.join), kept.join, kept.paths)
            _check_probes(str(kept.join), None, kept.paths, problem)
        _check_stores(self, problem)
        cost = sum(problem.cost_model.step_cost(step) for step in self.steps())
        cost += sum(problem.cost_model.upkeep_cost(kept.join) for kept in self.intermediates)
        if not math.isclose(cost, self.cost, rel_tol=COST_TOLERANCE, abs_tol=COST_TOLERANCE):
            raise InvalidPlan(f"the plan states cost {self.cost}, its steps cost {cost}")


def _lines(paths: Iterable[ProbePath]) -> tuple[TextTree, ...]:
    return tuple(TextTree(str(path)) for path in paths)


def _check_owners(plan: JointPlan, problem: Problem) -> None:
    if sorted(each.query for each in plan.queries) != sorted(query.name for query in problem.queries):
        raise InvalidPlan("the plan's queries are not the problem's queries")
    kept = [each.join for each in plan.intermediates]
    if len(set(kept)) < len(kept):
        raise InvalidPlan("an intermediate is kept twice")


def _check_probes(owner: str, query: QueryGraph | None, paths: tuple[ProbePath, ...], problem: Problem) -> None:
    for path in paths:
        if not all(problem.may_probe(path.start, step.target, query) for step in path.steps):
            raise InvalidPlan("a path probes an intermediate that it may not use", where=f"{owner}, path {path}")


def _check_paths(owner: str, join: SubJoin, paths: tuple[ProbePath, ...]) -> None:
    if sorted(path.start for path in paths) != list(join.relations):
        raise InvalidPlan("not exactly one path per start", where=owner)
    for path in paths:
        where = f"{owner}, path {path}"
        joined = SubJoin((path.start,))
        for step in path.steps:
            if step.start != path.start or step.joined != joined:
                raise InvalidPlan("a step does not begin where the last one ended", where=where)
            if set(step.target.relations) & set(joined.relations):
                raise InvalidPlan("a relation is joined twice", where=where)
            joined = join.within(joined.relations + step.target.relations)
            if step.target != join.within(step.target.relations) or step.result != joined:
                raise InvalidPlan("a step does not apply exactly the predicates of its owner", where=where)
            if not step.crossing:
                raise InvalidPlan("a step is a cross product", where=where)
        if joined != join:
            raise InvalidPlan("a path ends before all relations are joined", where=where)


def _check_stores(plan: JointPlan, problem: Problem) -> None:
    attribute_by_store = {each.store: each.attribute for each in plan.partitionings}
    if len(attribute_by_store) < len(plan.partitionings):
        raise InvalidPlan("a store is partitioned in two ways")
    kept = {each.join for each in plan.intermediates}
    for store, attribute in attribute_by_store.items():
        if attribute and (not problem.may_partition or attribute.relation not in store.relations):
            raise InvalidPlan(f"store {store} cannot be partitioned by {attribute}")
    for step in plan.steps():
        if step.target not in attribute_by_store or attribute_by_store[step.target] != step.partitioning:
            raise InvalidPlan("a step expects another partitioning than its store has", where=str(step))
        if not step.target.is_base and step.target not in kept:
            raise InvalidPlan("an intermediate is probed but not maintained", where=str(step))
    room = problem.room_for_intermediates()
    taken = sum(problem.cost_model.stored(join) for join in kept)
    if room is not None and taken > room * (1 + COST_TOLERANCE):
        raise InvalidPlan(f"intermediates take {taken} of {room} that the storage budget leaves")
