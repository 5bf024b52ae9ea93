"""The papers' costs: tuples sent (CLASH Eq. 1) and tuples stored (MultiStream Eq. 3).

    100 rows each in R, S, T; S x T gives 150 rows, R x S 100:
    <S,R,T> sends 100 + 100/2 = 150;  <S,T,R> sends 100 + 150/2 = 175

A step sends the join of the j relations so far, of which 1/j has the start as its newest member, to one task of
the next store if the sender knows its partitioning attribute, else to all of its tasks (the factor chi).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dovetail.core.errors import QueryError
from dovetail.optimizer.joint.plan import Step
from dovetail.optimizer.joint.problem import Predicate, SubJoin


@dataclass(frozen=True)
class PapersStatistics:
    """Rows of a relation within its window, selectivity of a predicate, tasks of a store.

    A store of an intermediate has as many tasks as its widest relation: the papers leave it open.
    """

    rows_by_relation: Mapping[str, float]
    selectivity_by_predicate: Mapping[Predicate, float]
    parallelism_by_relation: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not all(rows >= 0 for rows in self.rows_by_relation.values()):
            raise QueryError("a relation has negative rows", hint="give rows per window, zero or more")
        if not all(0 <= each <= 1 for each in self.selectivity_by_predicate.values()):
            raise QueryError("a selectivity is outside 0..1", hint="give results over all pairs")
        if not all(tasks >= 1 for tasks in self.parallelism_by_relation.values()):
            raise QueryError("a store has no task", hint="give each relation a parallelism of 1 or more")


class PapersCost:
    """`CostModel` by the papers' formulas. An intermediate costs only the steps that maintain it."""

    def __init__(self, statistics: PapersStatistics) -> None:
        self.statistics = statistics
        self._rows_by_join: dict[SubJoin, float] = {}

    def rows(self, join: SubJoin) -> float:
        rows = self._rows_by_join.get(join)
        if rows is None:
            rows = 1.0
            for relation in join.relations:
                rows *= self.statistics.rows_by_relation[relation]
            for predicate in join.predicates:
                rows *= self.statistics.selectivity_by_predicate[predicate]
            self._rows_by_join[join] = rows
        return rows

    def parallelism(self, store: SubJoin) -> int:
        return max(self.statistics.parallelism_by_relation.get(relation, 1) for relation in store.relations)

    def step_cost(self, step: Step) -> float:
        chi = self.parallelism(step.target) if _must_broadcast(step) else 1
        return self.rows(step.joined) / len(step.joined.relations) * chi

    def upkeep_cost(self, intermediate: SubJoin) -> float:  # noqa: ARG002 - the papers charge nothing, whatever it is
        return 0.0

    def stored(self, store: SubJoin) -> float:
        return self.rows(store)


def _must_broadcast(step: Step) -> bool:
    """Whether the sender knows no value of the target's partitioning attribute. Stores without one are asked whole,
    which the papers count like a known attribute.
    """
    if step.partitioning is None:
        return False
    equal = {step.partitioning}
    # Equalities are transitive: S+T partitioned by S.a is found by R.a = T.a if S.a = T.a holds inside of it.
    is_growing = True
    while is_growing:
        is_growing = False
        for predicate in step.result.predicates:
            if (predicate.first in equal) != (predicate.second in equal):
                equal |= {predicate.first, predicate.second}
                is_growing = True
    return not any(attribute.relation in step.joined.relations for attribute in equal)
