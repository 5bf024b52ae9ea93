"""A query as the planner sees it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from dovetail.plan.store_plan import ROW, store_id
from dovetail.plan.visibility import Rank
from dovetail.query.expression import Expression, rename_relations
from dovetail.query.join_query import JoinQuery, Relation
from dovetail.query.time_closure import UpperByPair, close_time_bounds

T = TypeVar("T")


@dataclass(frozen=True)
class Collapsed:
    """An alias that stands for an intermediate, and the aliases it took the place of."""

    alias: str
    members: tuple[str, ...]


@dataclass(frozen=True)
class LiveQuery:
    """`id` is unique for ever; `complete_from` is the first batch whose rows the query may use.

    `collapsed` are its intermediates; `into` the store that takes the rows in place of a user.
    `rank_order` names stores, the lowest rank first; all others rank above them, by name.
    `may_materialize` off: the query probes no intermediate. `first_batch` is the first that it answers.
    """

    id: str
    name: str
    query: JoinQuery
    complete_from: int = 0
    collapsed: tuple[Collapsed, ...] = ()
    into: str | None = None
    rank_order: tuple[str, ...] = ()
    may_materialize: bool = True
    first_batch: int = 0

    def derived(self, key: tuple[Hashable, ...], make: Callable[[], T]) -> T:
        """`make()`, once for this record: a query outlives many plans, and most of what they need of it is the same."""
        if key not in self._derived:
            self._derived[key] = make()
        found: T = self._derived[key]
        return found

    @cached_property
    def _derived(self) -> dict[tuple[Hashable, ...], Any]:
        return {}

    def ranked(self, rank_order: tuple[str, ...]) -> LiveQuery:
        """The same query under other ranks; the same record again for the same ranks."""
        if rank_order == self.rank_order:
            return self
        return self.derived(("ranked", rank_order), lambda: replace(self, rank_order=rank_order))

    def selection_and_text(self, alias: str) -> tuple[str, Expression]:
        """What the query asks of a stored row of this relation, after its text."""

        def make() -> tuple[str, Expression]:
            selection = as_row(self.query.relation(alias).selection, alias)
            return str(selection), selection

        return self.derived(("selection", alias), make)

    @cached_property
    def time_closure(self) -> UpperByPair:
        return close_time_bounds((relation.alias for relation in self.query.relations), self.query.time_bounds)

    @cached_property
    def rank_by_alias(self) -> dict[str, Rank]:
        """Self-joins: occurrences of one store are told apart by their order in FROM. Intermediates rank lowest."""
        place_by_store = {store: place for place, store in enumerate(self.rank_order)}
        kept = {each.alias for each in self.collapsed}
        seen: dict[str, int] = {}
        ranks: dict[str, Rank] = {}
        for relation in self.query.relations:
            store = store_of(relation)
            place = -1 if relation.alias in kept else place_by_store.get(store, len(place_by_store))
            ranks[relation.alias] = (place, store, seen.get(store, 0))
            seen[store] = seen.get(store, 0) + 1
        return ranks


def store_of(relation: Relation) -> str:
    return store_id(relation.stream, relation.hop_window)


def as_row(expression: Expression, alias: str) -> Expression:
    """An expression over one relation, said of a stored row: equal for all queries that ask the same."""
    return rename_relations(expression, {alias: ROW})
