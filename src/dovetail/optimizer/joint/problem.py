"""What is to be planned together: queries as join graphs over shared relations, and what a plan may use.

    q1 = R(b), S(b, c), T(c)        R.b = S.b, S.c = T.c
    q2 = S(c), T(c, d), U(d)        S.c = T.c, T.d = U.d
    sub-joins of q1: R, S, T, R+S, S+T, R+S+T; R+T is none, for nothing connects them
    S+T is a sub-join of both queries: whoever joins or stores it does so for both

A sub-join has all predicates that its query has among its relations. Two queries share one only if these are
equal too, so the same relations joined differently never pass for the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dovetail.core.errors import QueryError

if TYPE_CHECKING:
    from dovetail.optimizer.joint.cost import CostModel


@dataclass(frozen=True, order=True, slots=True)
class Attribute:
    relation: str
    name: str

    def __str__(self) -> str:
        return f"{self.relation}.{self.name}"


@dataclass(frozen=True, order=True, slots=True)
class Predicate:
    """An equality between attributes of two relations; the smaller side comes first, so that equal ones are equal."""

    first: Attribute
    second: Attribute

    def __post_init__(self) -> None:
        if self.first.relation >= self.second.relation:
            raise QueryError(
                f"{self} is not a predicate of the joint plan",
                hint="name two different relations, the smaller one first; `equality` orders them",
            )

    def __str__(self) -> str:
        return f"{self.first}={self.second}"

    def touches(self, relations: Iterable[str]) -> bool:
        return self.first.relation in relations or self.second.relation in relations

    def is_within(self, relations: Iterable[str]) -> bool:
        return self.first.relation in relations and self.second.relation in relations


def equality(one: str, other: str) -> Predicate:
    """`R.a = S.b` from `"R.a"` and `"S.b"`, whatever their order."""
    first, second = sorted(Attribute(*text.rsplit(".", 1)) for text in (one, other))
    return Predicate(first, second)


@dataclass(frozen=True, order=True, slots=True)
class SubJoin:
    """Relations and the predicates that join them, both sorted; one relation alone is a base relation."""

    relations: tuple[str, ...]
    predicates: tuple[Predicate, ...] = ()

    def __post_init__(self) -> None:
        if list(self.relations) != sorted(set(self.relations)) or list(self.predicates) != sorted(set(self.predicates)):
            raise QueryError(f"{self} is not in order", hint="sort relations and predicates, each once")
        if not is_connected(self.relations, self.predicates):
            raise QueryError(
                f"{self} is a cross product", hint="join every relation to another by an equality among them"
            )

    def __str__(self) -> str:
        if self.is_base:
            return self.relations[0]
        return f"({'+'.join(self.relations)} on {','.join(map(str, self.predicates))})"

    @property
    def is_base(self) -> bool:
        return len(self.relations) == 1

    def within(self, relations: Iterable[str]) -> SubJoin:
        """The sub-join of these relations with all predicates among them."""
        chosen = set(relations)
        return SubJoin(tuple(sorted(chosen)), tuple(each for each in self.predicates if each.is_within(chosen)))


def is_connected(relations: Iterable[str], predicates: Iterable[Predicate]) -> bool:
    missing = set(relations)
    neighbours: dict[str, set[str]] = defaultdict(set)
    for predicate in predicates:
        if not predicate.is_within(missing):
            return False
        neighbours[predicate.first.relation].add(predicate.second.relation)
        neighbours[predicate.second.relation].add(predicate.first.relation)
    if not missing:
        return False
    reached = [min(missing)]
    missing.discard(reached[0])
    while reached:
        new = neighbours[reached.pop()] & missing
        missing -= new
        reached.extend(new)
    return not missing


@dataclass(frozen=True)
class QueryGraph:
    """A query's joins. `may_materialize` off: its probe orders visit base relations only.

    `intermediates` are the sub-joins that it may probe as one store; None: all that are connected.
    """

    name: str
    join: SubJoin
    may_materialize: bool = True
    intermediates: frozenset[SubJoin] | None = None

    def __post_init__(self) -> None:
        if self.join.is_base:
            raise QueryError(f"query {self.name} joins nothing", hint="plan queries of one relation elsewhere")

    def __str__(self) -> str:
        return f"{self.name}: {self.join}"

    def may_probe(self, store: SubJoin) -> bool:
        if store.is_base:
            return True
        return self.may_materialize and (self.intermediates is None or store in self.intermediates)


def query_graph(name: str, predicates: Iterable[Predicate], *, may_materialize: bool = True) -> QueryGraph:
    """The query over all relations that these predicates name."""
    ordered = tuple(sorted(set(predicates)))
    relations = sorted({side.relation for each in ordered for side in (each.first, each.second)})
    return QueryGraph(name, SubJoin(tuple(relations), ordered), may_materialize)


@dataclass(frozen=True)
class Problem:
    """Queries to plan together. `storage_budget` is in the units of the cost model's `stored` and covers base relations
    too, as in MultiStream; these are kept in any case, so a budget below them only forbids every intermediate.

    `rank_order`: relations from the lowest rank to the highest; a start may probe an intermediate only if it ranks
    above all of its members. None: no such limit. `may_nest` off: intermediates are maintained over base relations.
    """

    queries: tuple[QueryGraph, ...]
    cost_model: CostModel
    may_materialize: bool = True
    may_partition: bool = True
    storage_budget: float | None = None
    rank_order: tuple[str, ...] | None = None
    may_nest: bool = True
    relations: tuple[str, ...] = field(init=False)
    _rank_by_relation: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = [query.name for query in self.queries]
        if len(set(names)) < len(names):
            raise QueryError("two queries have one name", hint="give each query a name of its own")
        if self.storage_budget is not None and not self.storage_budget >= 0:
            raise QueryError("a storage budget is not negative", hint="leave it out for none")
        relations = sorted({relation for query in self.queries for relation in query.join.relations})
        object.__setattr__(self, "relations", tuple(relations))
        ranks = {relation: rank for rank, relation in enumerate(self.rank_order or ())}
        if self.rank_order is not None and not set(relations) <= set(ranks):
            raise QueryError("a relation has no rank", hint="name every relation in rank_order, or leave it out")
        object.__setattr__(self, "_rank_by_relation", ranks)

    def materializes(self, query: QueryGraph) -> bool:
        return self.may_materialize and query.may_materialize

    def may_probe(self, start: str, store: SubJoin, owner: QueryGraph | None) -> bool:
        """Whether a path of this query, or of an intermediate's upkeep if None, may visit the store."""
        if store.is_base:
            return True
        if not self.may_materialize or not (self.may_nest if owner is None else owner.may_probe(store)):
            return False
        ranks = self._rank_by_relation
        return self.rank_order is None or all(ranks[start] > ranks[relation] for relation in store.relations)

    def room_for_intermediates(self) -> float | None:
        """What the budget leaves for intermediates; None: as much as one likes."""
        if self.storage_budget is None:
            return None
        base = sum(self.cost_model.stored(SubJoin((relation,))) for relation in self.relations)
        return max(0.0, self.storage_budget - base)


def partitioning_candidates(store: SubJoin, predicates: Iterable[Predicate]) -> Iterator[Attribute]:
    """Attributes of the store that some of the predicates joins to a relation outside: a sender may know no other."""
    for predicate in predicates:
        inside = [side for side in (predicate.first, predicate.second) if side.relation in store.relations]
        if len(inside) == 1:
            yield inside[0]
