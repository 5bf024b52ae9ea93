"""AJoin's cost of a shared join (Eq. 1 and 2), literally, for the paper's examples.

    COST(S1 join S2) = bi1 * Crd(S1) + bi2 * Crd(S2) + Min(DistKey S1, DistKey S2) + bm * Crd(S1 join S2)

Shared, S1 holds the rows that some query wants, and so does S2: rows in common are indexed once, but every row of S1
meets every row of S2 with its key, also where no query wants both. That is why sharing can cost more (Figure 6).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from dovetail.optimizer.query_groups.group_queries import JoinUse
from dovetail.query.expression import Expression


class KeyedRow(NamedTuple):
    row: int
    key: str


class Cardinality(Protocol):
    """Of one stream, for the rows that at least one of the selections wants."""

    def rows(self, selections: Sequence[Expression]) -> float: ...

    def distinct_keys(self, selections: Sequence[Expression]) -> float: ...


JoinRows = Callable[[Sequence[Expression], Sequence[Expression]], float]
"""Pairs of equal key between the rows that some selection wants of the one stream and of the other."""


@dataclass(frozen=True)
class RowSets:
    """`Cardinality` from the rows themselves."""

    rows_by_selection: Mapping[Expression, frozenset[KeyedRow]]

    def union(self, selections: Iterable[Expression]) -> frozenset[KeyedRow]:
        return frozenset().union(*(self.rows_by_selection[selection] for selection in selections))

    def rows(self, selections: Sequence[Expression]) -> float:
        return len(self.union(selections))

    def distinct_keys(self, selections: Sequence[Expression]) -> float:
        return len({row.key for row in self.union(selections)})


@dataclass(frozen=True)
class AJoinCost:
    """`GroupCost` by Eq. 2; the flags are bi1, bi2 and bm: a leaf is indexed, only the sink materializes."""

    a: Cardinality
    b: Cardinality
    join_rows: JoinRows
    indexes_a: bool = True
    indexes_b: bool = True
    materializes: bool = True

    def cost(self, uses: Sequence[JoinUse]) -> float:
        a_selections = [use.a_selection for use in uses]
        b_selections = [use.b_selection for use in uses]
        return (
            self.indexes_a * self.a.rows(a_selections)
            + self.indexes_b * self.b.rows(b_selections)
            + min(self.a.distinct_keys(a_selections), self.b.distinct_keys(b_selections))
            + (self.join_rows(a_selections, b_selections) if self.materializes else 0.0)
        )


def cost_of_row_sets(
    a: RowSets, b: RowSets, *, indexes_a: bool = True, indexes_b: bool = True, materializes: bool = True
) -> AJoinCost:
    def join_rows(a_selections: Sequence[Expression], b_selections: Sequence[Expression]) -> float:
        a_keys = Counter(row.key for row in a.union(a_selections))
        b_keys = Counter(row.key for row in b.union(b_selections))
        return sum(count * b_keys[key] for key, count in a_keys.items())

    return AJoinCost(a, b, join_rows, indexes_a, indexes_b, materializes)
